package spanner

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// brief is a lease of ann's on "jobs" in a store whose Commits go as told.
type brief struct {
	network  *network
	s, whole *Store
	service  *service.Service // on s
	foreign  *spanner.Client
	key      leadership.Key
	grant    leadership.Lease
}

func newBrief(t *testing.T, lease time.Duration) *brief {
	t.Helper()
	cfg, n := migrated(t), new(network)
	b := &brief{network: n, s: through(t, n, cfg), whole: opened(t, cfg), foreign: client(t, cfg), key: leadership.NewKey()}
	b.service = service.New(b.s)
	g, err := b.service.Acquire(t.Context(), b.ask(lease))
	require.NoError(t, err)
	b.grant = g.Lease
	return b
}

func (b *brief) ask(d time.Duration) leadership.AcquireRequest {
	return leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", Key: &b.key, LeaseDuration: d}
}

func (b *brief) lease() leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Key: b.key, Token: 1}
}

func (b *brief) renewal() rule.Renewal {
	return rule.Renewal{Election: "jobs", CandidateID: "ann", KeyHash: b.key.Hash(), Token: 1}
}

// late sends a heartbeat whose Commit waits until Spanner says that the lease is over: its clock is
// the only one that counts. If the lease is over before the Commit, another one lasts longer.
func late(t *testing.T, send func(*testing.T, *brief) (rule.Snapshot, error), r reply) (*brief, rule.Snapshot, error) {
	for lease := leadership.MinLeaseDuration; ; lease *= 2 {
		b, inTime := newBrief(t, lease), false
		r.stall = func() {
			now := b.now(t)
			for inTime = !now.After(b.grant.LeaseExpiration); t.Context().Err() == nil && !now.After(b.grant.LeaseExpiration); now = b.now(t) {
				select {
				case <-time.After(b.grant.LeaseExpiration.Sub(now) + time.Millisecond):
				case <-t.Context().Done():
				}
			}
		}
		b.network.plan(r)
		if snap, err := send(t, b); inTime {
			return b, snap, err
		}
	}
}

func (b *brief) now(t *testing.T) (now time.Time) {
	query := b.foreign.Single().Query(t.Context(), spanner.NewStatement("SELECT CURRENT_TIMESTAMP()"))
	if err := query.Do(func(r *spanner.Row) error { return r.Columns(&now) }); err != nil {
		t.Error(err)
		return b.grant.LeaseExpiration.Add(time.Microsecond) // or else late would wait for ever
	}
	return now
}

// over reports an error unless reads and decisions show that the lease ended when it would have
// without the late renewal.
func (b *brief) over(t *testing.T) {
	t.Helper()
	for what, s := range map[string]*Store{"here": b.s, "elsewhere": b.whole} {
		snap, err := s.Get(t.Context(), "jobs")
		if err != nil || snap.Live() || snap.Record.LeaderID != "ann" || !snap.Record.LeaseEnd().Equal(b.grant.LeaseExpiration) {
			t.Errorf("%s: %q leads: %v, until %v, %v; want it to have been ann until %v",
				what, snap.Record.LeaderID, snap.Live(), snap.Record.LeaseEnd(), err, b.grant.LeaseExpiration)
		}
	}
	if a := b.s.Renew(t.Context(), []rule.Renewal{b.renewal()})[0]; !errors.Is(a.Err, rule.ErrNotRenewed) {
		t.Errorf("a batched renewal: %+v, want %v", a, rule.ErrNotRenewed)
	}
	if _, err := b.service.Renew(t.Context(), b.lease()); !errors.Is(err, leadership.LeaseLost) {
		t.Errorf("asked again: %v, want %s", err, leadership.LeaseLost)
	}
}

// heartbeats are the ways to send one. Each returns what the store answers.
func heartbeats() map[string]func(*testing.T, *brief) (rule.Snapshot, error) {
	update := func(decide func(rule.Snapshot, *brief) (rule.Change, error)) func(*testing.T, *brief) (rule.Snapshot, error) {
		return func(t *testing.T, b *brief) (rule.Snapshot, error) {
			return b.s.Update(t.Context(), "jobs", rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) { return decide(s, b) })
		}
	}
	return map[string]func(*testing.T, *brief) (rule.Snapshot, error){
		"a batched renewal": func(t *testing.T, b *brief) (rule.Snapshot, error) {
			a := b.s.Renew(t.Context(), []rule.Renewal{b.renewal()})[0]
			if a.Err == nil && !a.Before.Equal(b.grant.LeaseExpiration) {
				t.Errorf("before is %v, want %v", a.Before, b.grant.LeaseExpiration)
			}
			return renewed(a)
		},
		"a renewal by a decision": update(func(s rule.Snapshot, b *brief) (rule.Change, error) {
			return rule.Renew(s, b.renewal())
		}),
		"acquired again, for longer": update(func(s rule.Snapshot, b *brief) (rule.Change, error) {
			return rule.Acquire(s, rule.AcquireCommand{CandidateID: "ann", KeyHash: b.key.Hash(), LeaseDuration: time.Hour})
		}),
	}
}

func TestALateRenewalDoesNotReviveTheLease(t *testing.T) {
	t.Parallel()
	for how, send := range heartbeats() {
		for _, r := range []reply{{}, {lose: true, answer: codes.DeadlineExceeded}} {
			t.Run(fmt.Sprintf("%s, reply lost %v", how, r.lose), func(t *testing.T) {
				t.Parallel()
				b, snap, err := late(t, send, r)
				if r.lose != errors.Is(err, leadership.OutcomeUnknown) || !r.lose && err != nil {
					t.Fatalf("got %v", err)
				}
				if at := column(t, b.foreign, "renewed_at")["jobs"]; !at.Time.After(b.grant.LeaseExpiration) {
					t.Fatalf("the last heartbeat is of %v, and the lease ended at %v: it was not written", at, b.grant.LeaseExpiration)
				}
				read, err := b.whole.Get(t.Context(), "jobs")
				if diff := cmp.Diff(snap.Record, read.Record); err != nil || !r.lose && diff != "" {
					t.Errorf("answered and read, %v (-answered +read)\n%s", err, diff)
				}
				b.over(t) // though it is not undone, as if the process had died here
				snap, err = b.whole.Update(t.Context(), "jobs", rule.Expect{}, rule.Expire)
				for err == nil && snap.Record.LeaderID != "" && !snap.Now.After(b.grant.LeaseExpiration.Add(Guard)) {
					snap, err = b.whole.Update(t.Context(), "jobs", rule.Expect{}, rule.Expire)
				}
				if err != nil || !snap.Record.EndedAt.Equal(b.grant.LeaseExpiration) {
					t.Errorf("ended at %v, %v; want %v", snap.Record.EndedAt, err, b.grant.LeaseExpiration)
				}
				if next, err := b.whole.Update(t.Context(), "jobs", rule.Expect{}, acquire("bob")); err != nil || next.Record.Token != 2 || !next.Live() {
					t.Errorf("the next: %+v, %v", next.Record, err)
				}
			})
		}
	}
}

func TestOnlyARenewalHasATimeThatItWasDue(t *testing.T) {
	t.Parallel()
	cfg := migrated(t)
	s, foreign := opened(t, cfg), client(t, cfg)
	var last rule.Snapshot
	update := func(decide func(rule.Snapshot) (rule.Change, error)) func() (rule.Snapshot, error) {
		return func() (rule.Snapshot, error) { return s.Update(t.Context(), "jobs", rule.Expect{}, decide) }
	}
	batched := func() (rule.Snapshot, error) {
		a := s.Renew(t.Context(), []rule.Renewal{renewalOf("jobs", "ann", 1)})[0]
		return renewed(a)
	}
	const none, theEndBefore, asItWas = 0, 1, 2
	for _, c := range []struct {
		what string
		do   func() (rule.Snapshot, error)
		due  int
	}{
		{"a grant", update(acquire("ann")), none},
		{"configured after a grant", update(lockDelay(time.Millisecond, 0)), asItWas},
		{"the same again", update(acquire("ann")), theEndBefore},
		{"a batched renewal", batched, theEndBefore},
		{"configured", update(lockDelay(2*time.Millisecond, 0)), asItWas},
		{"a batched renewal after that", batched, theEndBefore},
		{"released", update(func(s rule.Snapshot) (rule.Change, error) {
			return rule.Apply(s, leadership.Release{LeaseRequest: renewalOf("jobs", "ann", 1).Request()})
		}), none},
		{"a takeover", update(acquire("bob")), none},
	} {
		want := map[int]spanner.NullTime{
			none:         {},
			theEndBefore: {Time: last.Record.LeaseEnd(), Valid: true},
			asItWas:      column(t, foreign, "prior_end")["jobs"],
		}[c.due]
		answered, err := c.do()
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if got := column(t, foreign, "prior_end")["jobs"]; got.Valid != want.Valid || !got.Time.Equal(want.Time) {
			t.Errorf("%s: prior_end is %v, want %v", c.what, got, want)
		}
		if last, err = s.Get(t.Context(), "jobs"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(answered.Record, last.Record); diff != "" {
			t.Errorf("%s (-answered +read)\n%s", c.what, diff)
		}
	}
}

// renewed is the election after a renewal, if there was one.
func renewed(a rule.Renewed) (rule.Snapshot, error) {
	if a.Err != nil {
		return rule.Snapshot{}, a.Err
	}
	return a.Snapshot(), nil
}
