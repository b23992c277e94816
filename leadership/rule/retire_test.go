package rule_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/memory"
	"regent/store/storetest"
)

var retireBegin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// vacancy is an election that is vacant since retireBegin, under its seventh token.
func vacancy(after, lockFor time.Duration) rule.Record {
	return rule.Record{
		Election: "jobs", Token: 7, Revision: 15, Needs: 1, EndedAt: retireBegin, LockFor: lockFor,
		Policy: rule.Policy{Config: leadership.Config{RetireAfter: after}},
	}
}

func heldSince(r rule.Record) rule.Record {
	r.LeaderID, r.KeyHash, r.LeaseDuration = "ann", leadership.KeyHash{1}, time.Hour
	r.AcquiredAt, r.HeartbeatAt = r.EndedAt, r.EndedAt
	r.EndedAt, r.LockFor = time.Time{}, 0
	return r
}

func tombstone(r rule.Record) rule.Record {
	r.Deleted = true
	return r
}

func TestElectionIsRetiredOnceItWasVacantForSoLongAndNeverBefore(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	for name, c := range map[string]struct {
		record rule.Record
		after  time.Duration // since retireBegin
		want   bool
	}{
		"just not yet":                     {vacancy(hour, 0), hour - 1, false},
		"from that instant on":             {vacancy(hour, 0), hour, true},
		"long ago":                         {vacancy(hour, 0), 1000 * hour, true},
		"never, as it is not configured":   {vacancy(0, 0), 100_000 * hour, false},
		"not while it is locked":           {vacancy(hour, 2*hour), 2*hour - 1, false},
		"once its lock has ended":          {vacancy(hour, 2*hour), 2 * hour, true},
		"not while it is held":             {heldSince(vacancy(2*hour, 0)), 2*hour - 1, false},
		"not if a lease ended unrecorded":  {heldSince(vacancy(2*hour, 0)), 1000 * hour, false},
		"not twice":                        {tombstone(vacancy(hour, 0)), 1000 * hour, false},
		"not if it was never seen":         {rule.Record{Election: "jobs"}, 1000 * hour, false},
		"not if nothing says since when":   {rule.Record{Election: "jobs", Revision: 1, Policy: vacancy(hour, 0).Policy}, 1000 * hour, false},
		"at the longest that may be asked": {vacancy(leadership.MaxRetireAfter, 0), leadership.MaxRetireAfter, true},
	} {
		s := rule.Snapshot{Record: c.record, Now: retireBegin.Add(c.after)}
		ch, carried, err := rule.Codec{}.Decide(s, rule.Carried{}, rule.Retire)
		if err != nil || !ch.Empty() != c.want {
			t.Errorf("%s: got %+v, %v; want retired=%v", name, ch, err, c.want)
		}
		if due := c.record.RetireAt(); c.want != (!due.IsZero() && !s.Now.Before(due)) {
			t.Errorf("%s: RetireAt is %v at %v", name, due, s.Now)
		}
		if !c.want || err != nil {
			continue
		}
		r, e := ch.Record, ch.Events[0]
		if !r.Deleted || r.Token != 7 || r.Revision != 16 || r.LeaderID != "" || r.LockFor != c.record.LockFor || carried.Needs != 1 {
			t.Errorf("%s: wrote %+v with %+v", name, r, carried)
		}
		if e.Type != leadership.EventDeleted || e.Token != 7 || !strings.HasPrefix(e.Reason, "retired: ") || !strings.Contains(e.Detail, "retireAfterMs") {
			t.Errorf("%s: told %+v", name, e)
		}
	}
}

func TestVacancyCountsFromTheLastConfigurationAndALockStaysAsItIs(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]rule.Record{
		"never seen":                   {Election: "jobs"},
		"vacant":                       vacancy(0, 0),
		"vacant, with another setting": vacancy(time.Hour, 0),
		"locked":                       vacancy(0, 50*time.Hour),
		"deleted":                      tombstone(vacancy(2*time.Hour, 0)),
		"deleted while locked":         tombstone(vacancy(2*time.Hour, 48*time.Hour)),
	} {
		now := retireBegin.Add(24 * time.Hour)
		s := rule.Snapshot{Record: r, Now: now}
		config := leadership.Config{RetireAfter: 2 * time.Hour}
		ch, err := rule.Apply(s, leadership.Configure{Config: config})
		if err != nil || !ch.Record.EndedAt.Equal(now) {
			t.Fatalf("%s: got %+v, %v; want a vacancy from now", name, ch.Record, err)
		}
		before, after := r.EndedAt.Add(r.LockFor), ch.Record.EndedAt.Add(ch.Record.LockFor)
		if before.After(now) && !after.Equal(before) || !before.After(now) && ch.Record.LockFor != 0 {
			t.Errorf("%s: the lock ended at %v and ends at %v", name, before, after)
		}
		if created := r.Revision == 0 || r.Deleted; created != (ch.Record.Standing.Created == now.Unix()) {
			t.Errorf("%s: it was created at %d, and is configured at %d", name, ch.Record.Standing.Created, now.Unix())
		}
		if at := ch.Record.RetireAt(); at.Before(now.Add(2 * time.Hour)) {
			t.Errorf("%s: it is retired at %v", name, at)
		}
		if _, _, err := (rule.Codec{}).Decide(s, rule.Carried{}, applies(leadership.Configure{Config: config})); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := heldSince(vacancy(0, 0))
	ch, err := rule.Apply(rule.Snapshot{Record: r, Now: retireBegin.Add(time.Minute)}, leadership.Configure{Config: leadership.Config{RetireAfter: time.Hour}})
	if err != nil || !ch.Record.EndedAt.IsZero() || ch.Record.LeaderID != "ann" {
		t.Errorf("held: got %+v, %v", ch.Record, err)
	}
	r.Policy.LockDelay = time.Hour
	ch, err = rule.Apply(rule.Snapshot{Record: r, Now: retireBegin.Add(90 * time.Minute)}, leadership.Configure{})
	if err != nil || ch.Record.LeaderID != "" || ch.Record.LockFor != 30*time.Minute || len(ch.Events) != 2 {
		t.Errorf("over, and its lock delay taken away: got %+v, %v", ch.Record, err)
	}
}

func TestAThousandThatCannotBeRetiredStopNoOther(t *testing.T) {
	t.Parallel()
	now := retireBegin
	prefix, tries := "none", atomic.Int64{} // the elections that cannot be changed begin so
	store := &storetest.Fake{
		Store: memory.New(memory.Config{Now: func() time.Time { return now }}),
		Around: func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
			if c.Method == "Update" && strings.HasPrefix(string(c.Election), prefix) {
				tries.Add(1)
				return leadership.StoreUnavailable
			}
			return next(ctx)
		},
	}
	s := service.New(store)
	for i := range leadership.MaxPageSize + 110 { // the first are due longest
		r := leadership.Configure{Election: leadership.Election(fmt.Sprintf("bad-%d", i))}
		if i >= leadership.MaxPageSize+10 {
			r.Election = leadership.Election(fmt.Sprintf("good-%d", i))
		}
		r.Config.RetireAfter = time.Hour
		_, err := s.Do(t.Context(), r)
		require.NoError(t, err)
		now = now.Add(time.Millisecond)
	}
	now = now.Add(2 * time.Hour)
	prefix = "bad-"
	if n, err := s.RetireAll(t.Context()); n != 100 || !errors.Is(err, leadership.StoreUnavailable) || tries.Load() != leadership.MaxPageSize+10 {
		t.Errorf("retired %d after %d tries in vain, %v; want 100, and why not all", n, tries.Load(), err)
	}
}
