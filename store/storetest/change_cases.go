package storetest

import (
	"context"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// Members that no program of this version knows.
const (
	unknownPolicy   = `{"colour":"<blue>","weight":1.50}`
	unknownStanding = `{"weather":[{"n":9007199254740993}]}`
)

// kinds has one change of each kind that Change allows. Each is made to a lease that ann holds, and
// changes everything that its kind may change.
var kinds = []struct {
	name   string
	decide func(rule.Snapshot) (rule.Change, error)
}{
	{"a heartbeat", func(s rule.Snapshot) (rule.Change, error) {
		ch, err := rule.Renew(s, renewalOf(jobs, "ann", 1))
		r := &ch.Record
		r.Standing.Unknown = unknownStanding
		r.EndsBy, r.EndsBecause = s.Record.HeartbeatAt.Add(time.Hour), leadership.EndsStuck
		return ch, err
	}},
	{"a quiet change of the policy", func(s rule.Snapshot) (rule.Change, error) {
		ch := rule.Change{Record: s.Record, Quiet: true}
		ch.Record.Policy.Unknown = unknownPolicy
		return ch, nil
	}},
	{"a quiet change of the standing", func(s rule.Snapshot) (rule.Change, error) {
		ch := rule.Change{Record: s.Record, Quiet: true}
		ch.Record.Standing.Unknown = `{"weather":[]}`
		return ch, nil
	}},
	{"events", limit(2*time.Hour, leadership.EndsMaxTerm)},
	{"a heartbeat and events", func(s rule.Snapshot) (rule.Change, error) {
		ch, err := rule.Acquire(s, rule.AcquireCommand{
			CandidateID: "ann", KeyHash: hashOf("ann"), LeaseDuration: 3 * time.Hour, Metadata: `{"a":1,"b":[1.5,"<é>",{"x":null}]}`,
		})
		r := &ch.Record
		r.Policy.LockDelay, r.Standing.Unknown = time.Minute, ""
		r.EndsBy, r.EndsBecause = time.Time{}, ""
		return ch, err
	}},
	{"a quiet change of a vacant election", func(s rule.Snapshot) (rule.Change, error) {
		ch := rule.Change{Record: s.Record, Quiet: true}
		ch.Record.Policy.LockDelay, ch.Record.Standing.Unknown = time.Hour, unknownStanding
		return ch, nil
	}},
}

// limit sets the latest end of a lease to that long after its last heartbeat, with an event.
func limit(after time.Duration, because leadership.EndReason) func(rule.Snapshot) (rule.Change, error) {
	return func(s rule.Snapshot) (rule.Change, error) {
		ch := rule.Change{Record: s.Record}
		r := &ch.Record
		r.EndsBy, r.EndsBecause = r.HeartbeatAt.Add(after), because
		r.Revision++
		ch.Events = []leadership.Event{{
			Election: r.Election, Revision: r.Revision, Type: "limited", LeaderID: r.LeaderID, Token: r.Token,
			RequestID: "request-1", Actor: "ann@example.com", Reason: "it is late: é", Detail: `{"a":"<b>","n":1.50}`,
		}}
		return ch, nil
	}
}

var changeCases = []contractCase{
	{"the whole record is written, whatever kind the change is of", func(h *handles) {
		h.exact(acquire("ann", time.Hour))
		for i, k := range kinds {
			if i == len(kinds)-1 {
				h.exact(apply(leadership.Release{LeaseRequest: renewalOf(jobs, "ann", 1).Request()}))
			}
			before := len(h.events(h.b, jobs))
			ch := h.exact(k.decide)
			if got := len(h.events(h.b, jobs)) - before; got != len(ch.Events) {
				h.Errorf("%s: %d events were written, want %d", k.name, got, len(ch.Events))
			}
		}
	}},
	{"every part of an event is kept, and its type may be one that no program knows", func(h *handles) {
		h.update(h.a, jobs, acquire("ann", time.Hour))
		var want leadership.Event
		snap := h.update(h.a, jobs, func(s rule.Snapshot) (rule.Change, error) {
			ch, err := limit(time.Hour, leadership.EndsParent)(s)
			want = ch.Events[0]
			return ch, err
		})
		want.At = snap.Now
		got := h.events(h.b, jobs)
		if len(got) != 2 || !got[1].At.Equal(want.At) {
			h.Fatalf("got %+v", got)
		}
		want.At = got[1].At // whatever form it has
		if diff := cmp.Diff(want, got[1]); diff != "" {
			h.Errorf("(-want +got):\n%s", diff)
		}
	}},
	{"a change that is none of the kinds is an error, and nothing is written", func(h *handles) {
		h.update(h.a, jobs, acquire("ann", time.Hour))
		want := h.update(h.a, jobs, limit(time.Hour, leadership.EndsStuck)).Record
		for name, spoil := range map[string]func(rule.Snapshot, *rule.Change){
			"a record without a kind that changes the token": func(_ rule.Snapshot, ch *rule.Change) {
				ch.Quiet, ch.Record.Token = true, 2
			},
			"quiet, and it ends the lease": func(_ rule.Snapshot, ch *rule.Change) {
				ch.Quiet, ch.Record.EndsBy = true, ch.Record.EndsBy.Add(-time.Minute)
			},
			"quiet, with a heartbeat": func(s rule.Snapshot, ch *rule.Change) {
				ch.Quiet, ch.Heartbeat, ch.Before = true, true, s.Record.LeaseEnd()
			},
			"a heartbeat that may be committed at any time": func(_ rule.Snapshot, ch *rule.Change) { ch.Heartbeat = true },
			"a heartbeat that changes the policy": func(s rule.Snapshot, ch *rule.Change) {
				ch.Heartbeat, ch.Before, ch.Record.Policy.LockDelay = true, s.Record.LeaseEnd(), time.Second
			},
			"an event that leaves a gap": func(s rule.Snapshot, ch *rule.Change) {
				*ch, _ = limit(time.Minute, leadership.EndsStuck)(s)
				ch.Record.Revision++
			},
			"a token that goes back": func(s rule.Snapshot, ch *rule.Change) {
				*ch, _ = limit(time.Minute, leadership.EndsStuck)(s)
				ch.Record.Token--
			},
			"a lease that starts anew without a heartbeat": func(s rule.Snapshot, ch *rule.Change) {
				*ch, _ = limit(time.Minute, leadership.EndsStuck)(s)
				ch.Record.HeartbeatAt = s.Record.HeartbeatAt.Add(time.Second)
			},
			"an event with a detail that is no object": func(s rule.Snapshot, ch *rule.Change) {
				*ch, _ = limit(time.Minute, leadership.EndsStuck)(s)
				ch.Events[0].Detail = `[1]`
			},
			"a record that nothing could be decided on": func(s rule.Snapshot, ch *rule.Change) {
				*ch, _ = limit(time.Minute, leadership.EndsStuck)(s)
				ch.Record.EndsBecause = ""
			},
			"a policy of more than 48 KiB": func(_ rule.Snapshot, ch *rule.Change) {
				ch.Quiet, ch.Record.Policy.Unknown = true, `{"x":"`+strings.Repeat("x", rule.MaxCarriedBytes)+`"}`
			},
		} {
			_, err := h.a.Update(h.Context(), jobs, rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
				ch := rule.Change{Record: s.Record}
				spoil(s, &ch)
				return ch, nil
			})
			if err == nil {
				h.Errorf("%s: it was taken", name)
			}
		}
		if got := h.get(h.b, jobs).Record; !sameRecord(got, want) || len(h.events(h.b, jobs)) != 2 {
			h.Errorf("got %+v\nwant %+v", got, want)
		}
	}},
	{"no renewal goes beyond the latest end of a lease, in any batch and through any handle", func(h *handles) { h.walkToTheLatestEnd() }},
}

// exact makes a change and expects the record to be exactly what was decided, in the answer and for
// both handles.
func (h *handles) exact(decide func(rule.Snapshot) (rule.Change, error)) rule.Change {
	h.Helper()
	e := &exact{Store: h.a, handles: h, want: new(rule.Record)}
	h.update(e, jobs, decide)
	e.check()
	return e.change
}

// exact is a store that checks that the record of jobs is as decided.
type exact struct {
	service.Store
	*handles
	change rule.Change  // the last
	want   *rule.Record // after it; the zero Record if nothing was written yet
}

// Update implements service.Store.
func (e *exact) Update(
	ctx context.Context, name leadership.Election, x rule.Expect, decide func(rule.Snapshot) (rule.Change, error),
) (rule.Snapshot, error) {
	e.Helper()
	after, err := e.Store.Update(ctx, name, x, func(s rule.Snapshot) (ch rule.Change, err error) {
		ch, err = decide(s)
		e.change = ch
		return ch, err
	})
	if err == nil && !e.change.Empty() {
		*e.want = e.change.Committed(after.Now)
		if _, err := (rule.Codec{}).Encode(e.want); err != nil {
			e.Error(err)
		}
		if diff := cmp.Diff(rounded(*e.want), rounded(after.Record)); diff != "" {
			e.Errorf("the answer to a change (-want +got):\n%s", diff)
		}
	}
	return after, err
}

// Renew implements service.Store.
func (e *exact) Renew(ctx context.Context, leases []rule.Renewal) []rule.Renewed {
	e.Helper()
	answers := e.Store.Renew(ctx, leases)
	for _, a := range answers {
		if a.Err != nil {
			continue
		}
		e.want.HeartbeatAt = rule.StartOf(a.Now, a.Before, e.want.LeaseDuration)
		if diff := cmp.Diff(rounded(*e.want), rounded(a.Snapshot().Record)); diff != "" {
			e.Errorf("the answer to a renewal (-want +got):\n%s", diff)
		}
	}
	return answers
}

// check expects both handles to read the decided record.
func (e *exact) check() {
	e.Helper()
	if e.want.Election == "" {
		return
	}
	for _, s := range []service.Store{e.a, e.b} {
		if diff := cmp.Diff(rounded(*e.want), rounded(e.get(s, jobs).Record)); diff != "" {
			e.Errorf("read again (-want +got):\n%s", diff)
		}
	}
}

// aged accepts that time has passed, and that a store may have dated its instants back for that.
func (e *exact) aged() {
	e.Helper()
	if e.want.Election == "" {
		return
	}
	got := e.get(e.a, jobs).Record
	undated := func(r rule.Record) rule.Record {
		for _, t := range []*time.Time{&r.AcquiredAt, &r.HeartbeatAt, &r.EndsBy, &r.EndedAt} {
			if !t.IsZero() {
				*t = time.Unix(0, 0)
			}
		}
		r.Standing = rule.Standing{}
		return r
	}
	standing := func(r rule.Record) string {
		carried, err := rule.Codec{}.Encode(&r)
		if err != nil {
			e.Error(err)
		}
		return instants.ReplaceAllString(carried.Standing, `"then"`)
	}
	if diff := cmp.Diff(undated(*e.want), undated(got)); diff != "" {
		e.Errorf("after some time (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(standing(*e.want), standing(got)); diff != "" {
		e.Errorf("the standing after some time (-want +got):\n%s", diff)
	}
	*e.want = got
}

const (
	limitedLease = 60 * time.Second // of the lease,
	limitedTerm  = 90 * time.Second // which ends so long after its grant
)

// walkToTheLatestEnd renews, expires and acquires a lease that has a latest end, next to one
// without.
func (h *handles) walkToTheLatestEnd() {
	const free leadership.Election = "free"
	services := []*service.Service{service.New(h.a), service.New(h.b)}
	for _, e := range []leadership.Election{jobs, free} {
		h.update(h.a, e, acquire("ann", limitedLease))
	}
	h.update(h.a, jobs, limit(limitedTerm, leadership.EndsEvicted))
	left := func(e leadership.Election, want time.Duration, l leadership.Lease, err error) {
		h.Helper()
		if err != nil || l.ExpiresIn > want || l.ExpiresIn < want-slack {
			h.Errorf("%s: %v left, %v; want %v or a little less", e, l.ExpiresIn, err, want)
		}
	}
	// Two batches with 50 s left until the latest end, and a third one past the first of them.
	h.backing.Advance(h, 40*time.Second)
	for i := range 4 {
		results, err := services[i%2].BatchRenew(h.Context(), []leadership.LeaseRequest{leaseOf(jobs, "ann", 1), leaseOf(free, "ann", 1)})
		require.NoError(h, err)
		left(jobs, 50*time.Second, results[0].Lease, results[0].Err)
		left(free, limitedLease, results[1].Lease, results[1].Err)
		if l := results[0].Lease; l.EndsBecause != leadership.EndsEvicted || l.EndsIn != l.ExpiresIn || !l.LeaseExpiration.Equal(l.EndsBy) || l.RenewIn > 20*time.Second {
			h.Errorf("got %+v", l)
		}
	}
	single, err := services[0].Renew(h.Context(), leaseOf(jobs, "ann", 1))
	left(jobs, 50*time.Second, single, err)
	again, err := services[1].Acquire(h.Context(), leadership.AcquireRequest{Election: jobs, CandidateID: "ann", Key: keyOf("ann")})
	left(jobs, 50*time.Second, again.Lease, err)

	h.backing.Advance(h, 51*time.Second)     // past the store's guard too
	endsBy := h.get(h.a, jobs).Record.EndsBy // a store that cannot move its clock has moved this
	for _, s := range services {
		results, err := s.BatchRenew(h.Context(), []leadership.LeaseRequest{leaseOf(jobs, "ann", 1), leaseOf(free, "ann", 1)})
		if err != nil || !isAny(results[0].Err, leadership.LeaseLost) || results[1].Err != nil {
			h.Errorf("after its latest end: got %+v, %v", results, err)
		}
	}
	expired := h.update(h.b, jobs, rule.Expire).Record
	if expired.LeaderID != "" || !expired.EndedAt.Equal(endsBy) || !expired.EndsBy.IsZero() || expired.EndsBecause != "" {
		h.Errorf("expired: got %+v, want an end at %v", expired, endsBy)
	}
	h.exact(acquire("bob", limitedLease))
	if r := h.get(h.b, jobs).Record; string(r.LeaderID) != "bob" || r.Token != 2 || !r.EndsBy.IsZero() {
		h.Errorf("bob: got %+v", r)
	}
}

// leaseOf names the lease of the holder for a Service.
func leaseOf(e leadership.Election, holder string, token leadership.Token) leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: e, CandidateID: leadership.CandidateID(holder), Key: *keyOf(holder), Token: token}
}

func keyOf(holder string) *leadership.Key {
	var k leadership.Key
	copy(k[:], holder)
	return &k
}
