package rule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
	"regent/leadership/rule"
)

// ending is ann's lease of 30 s, granted at noon, which ends that long after noon at the latest,
// looked at later.
func ending(t *testing.T, by, later time.Duration) rule.Snapshot {
	t.Helper()
	s := held(t, later)
	s.Record.EndsBy, s.Record.EndsBecause = noon.Add(by), leadership.EndsMaxTerm
	return s
}

func TestALeaseEndsAtItsLatestEndThoughItIsRenewed(t *testing.T) {
	for name, c := range map[string]struct{ by, later, end time.Duration }{
		"later than the lease":  {time.Minute, 10 * time.Second, 30 * time.Second},
		"with the lease":        {30 * time.Second, 10 * time.Second, 30 * time.Second},
		"earlier":               {20 * time.Second, 10 * time.Second, 20 * time.Second},
		"just before it":        {20 * time.Second, 20*time.Second - 1, 20 * time.Second},
		"at the very end of it": {20 * time.Second, 20 * time.Second, 20 * time.Second},
	} {
		s := ending(t, c.by, c.later)
		if got := s.Record.LeaseEnd(); !got.Equal(noon.Add(c.end)) {
			t.Errorf("%s: ends at %v", name, got)
		}
		ch, err := rule.Renew(s, rule.Renewal{Election: "jobs", CandidateID: "ann", KeyHash: hash('a'), Token: 1})
		if live := c.later < c.end; live != (err == nil) {
			t.Errorf("%s: renew: %v", name, err)
		}
		if err != nil {
			continue
		}
		if !ch.Before.Equal(noon.Add(c.end)) {
			t.Errorf("%s: has to be renewed before %v", name, ch.Before)
		}
		after, late := ch.Committed(s.Now), ch.Committed(noon.Add(c.end))
		if end := after.LeaseEnd(); end.After(noon.Add(c.by)) {
			t.Errorf("%s: renewed, it ends at %v", name, end)
		}
		if end := late.LeaseEnd(); !end.Equal(noon.Add(c.end)) {
			t.Errorf("%s: renewed too late, it ends at %v", name, end)
		}
	}
}

func TestLeaderIsToldNoTimeAfterTheLatestEnd(t *testing.T) {
	l := new(ending(t, 20*time.Second, 5*time.Second)).Lease()
	if l.ExpiresIn != 15*time.Second || l.EndsIn != 15*time.Second || !l.LeaseExpiration.Equal(l.EndsBy) || l.EndsBecause != leadership.EndsMaxTerm {
		t.Errorf("got %+v", l)
	}
	if want := 20*time.Second/3 - 5*time.Second; (l.RenewIn - want).Abs() > time.Millisecond {
		t.Errorf("renew in %v, want a third of what was left: %v", l.RenewIn, want)
	}
	soon := ending(t, 20*time.Second, 20*time.Second-time.Millisecond)
	soon.Record.HeartbeatAt = soon.Now
	if l := soon.Lease(); l.RenewIn < 300*time.Millisecond {
		t.Errorf("at the end: renew in %v, over and over", l.RenewIn)
	}
	over := new(ending(t, 20*time.Second, 20*time.Second)).Lease()
	if over.State != leadership.Vacant || !over.Lapsed || over.ExpiresIn != 0 || !over.EndsBy.IsZero() {
		t.Errorf("at the latest end: got %+v", over)
	}
}

func TestAfterTheLatestEndTheLeaseExpiresAndTheNextHasNone(t *testing.T) {
	s := ending(t, 20*time.Second, 20*time.Second+guard)
	expired := done(t, s, rule.Expire).Record
	if !expired.EndedAt.Equal(noon.Add(20*time.Second)) || !expired.EndsBy.IsZero() || expired.EndsBecause != "" {
		t.Errorf("got %+v", expired)
	}
	next := done(t, s, byBob).Record
	if next.Token != 2 || !next.EndsBy.IsZero() || next.EndsBecause != "" {
		t.Errorf("got %+v", next)
	}
	early := ending(t, 20*time.Second, 20*time.Second)
	_, err := byBob(early)
	assert.ErrorIs(t, err, leadership.LeaseHeld, "within the guard")
	if got := carried(t, elsewhere(), ending(t, 20*time.Second, 15*time.Second)); opensAfter(got) > 10*time.Second || !got.Record.EndsBy.IsZero() {
		t.Errorf("carried, it can be led after %v: %+v", opensAfter(got), got.Record)
	}
}

func TestAMoveCarriesPolicyAndStandingWhole(t *testing.T) {
	from := done(t, held(t, time.Second), released)
	from.Record.Policy = rule.Policy{Config: leadership.Config{LockDelay: time.Second}, Unknown: `{"a":1}`}
	from.Record.Standing.Unknown, from.Record.Needs = `{"b":1}`, 1
	got := carried(t, elsewhere(), from).Record
	if got.Policy != from.Record.Policy || got.Standing != from.Record.Standing || got.Needs != 1 {
		t.Errorf("got %+v", got)
	}
	again := elsewhere()
	again.Record = got
	from.Record.Policy.Unknown = `{"a":2}`
	if got := carried(t, again, from).Record; got.Policy != from.Record.Policy {
		t.Errorf("carried again after a change: got %+v", got)
	}
	kept := done(t, from, configured(time.Minute)).Record
	if kept.Policy.Unknown != `{"a":2}` || kept.Policy.LockDelay != time.Minute {
		t.Errorf("configured anew: got %+v", kept.Policy)
	}
}
