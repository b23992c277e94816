package firestore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"regent/leadership"
	"regent/leadership/service"
	"regent/store/storetest"
)

// reporting is a leader that reports, seen through two handles, of which the second counts its
// calls.
type reporting struct {
	*testing.T
	project
	ann         agent
	here, there *service.Service
	rpcs        *storetest.RPCs // of there
}

// newReporting lets ann lead, granted through the first handle, under that policy.
func newReporting(t *testing.T, term leadership.TermPolicy) (*reporting, leadership.Grant) {
	t.Helper()
	r := &reporting{T: t, project: newProject(t), ann: newAgent("ann"), rpcs: new(storetest.RPCs)}
	r.here = service.New(r.open(t))
	r.there = service.New(r.open(t, grpc.WithStatsHandler(r.rpcs)))
	configure(t, r.here, "jobs", leadership.Config{Term: term})
	if _, err := r.there.Acquire(t.Context(), r.ann.ask("first")); err != nil { // reads the secret of tickets
		t.Fatal(err)
	}
	g, err := r.here.Acquire(t.Context(), r.ann.ask("jobs"))
	require.NoError(t, err)
	return r, g
}

func configure(t *testing.T, s *service.Service, e leadership.Election, c leadership.Config) {
	t.Helper()
	_, err := s.Do(t.Context(), leadership.Configure{Election: e, Config: c})
	require.NoError(t, err)
}

// report renews with a report through the second handle, and expects it to cost those calls.
func (r *reporting) report(what, report string, ticket leadership.Ticket, rpcs ...string) (leadership.Lease, error) {
	r.Helper()
	c := r.ann.lease("jobs", 1)
	c.Report, c.Ticket = []byte(report), ticket
	r.rpcs.Take()
	l, err := r.there.Renew(r.Context(), c)
	if diff := cmp.Diff(rpcs, r.rpcs.Take()); diff != "" {
		r.Errorf("%s: RPCs (-want +got):\n%s", what, diff)
	}
	if err == nil && string(l.Report) != report {
		r.Errorf("%s: the report is %s, want %s", what, l.Report, report)
	}
	return l, err
}

// renewed is report that must succeed.
func (r *reporting) renewed(what, report string, ticket leadership.Ticket, rpcs ...string) leadership.Lease {
	r.Helper()
	l, err := r.report(what, report, ticket, rpcs...)
	if err != nil {
		r.Fatalf("%s: %v", what, err)
	}
	return l
}

const read, commit = "BatchGetDocuments", "Commit"

func TestARenewalWithAReportIsOneWriteWhereTheLeaseIsKnown(t *testing.T) {
	t.Parallel()
	r, g := newReporting(t, leadership.TermPolicy{StuckAfter: time.Hour})
	l := r.renewed("with the grant's ticket", `{"progress":1}`, g.Ticket, commit)
	for _, report := range []string{`{"progress":2}`, `{"progress":2}`, `{"progress":3,"tasks":1}`} {
		l = r.renewed("with the memory of the last heartbeat", report, "", commit)
	}
	if l.EndsBecause != leadership.EndsStuck || l.EndsIn < 50*time.Minute {
		t.Errorf("it ends in %v (%s), want an hour after the last progress", l.EndsIn, l.EndsBecause)
	}
	r.renewed("with the ticket of the last heartbeat", `{"progress":4,"tasks":1}`, l.Ticket, commit)
	plain, err := r.here.Renew(t.Context(), r.ann.lease("jobs", 1))
	if err != nil || plain.Report != `{"progress":4,"tasks":1}` {
		t.Errorf("a renewal without a report, elsewhere: %s, %v", plain.Report, err)
	}
	r.renewed("with the ticket of another handle's plain heartbeat", `{"progress":5,"tasks":1}`, plain.Ticket, commit)
	if events, err := r.here.Events(t.Context(), leadership.EventsRequest{Election: "jobs"}); err != nil || len(events) != 2 {
		t.Errorf("events %v, %v; want none for a report", events, err)
	}
}

// The time of the last reply may lie a lease before the commit, so only an hour can be counted from
// it.
func TestProgressCountsFromTheCommit(t *testing.T) {
	t.Parallel()
	const stuck = 2 * leadership.DefaultLeaseDuration
	r, g := newReporting(t, leadership.TermPolicy{StuckAfter: stuck})
	l := r.renewed("with progress", `{"progress":1}`, g.Ticket, read, commit)
	l = r.renewed("without more", `{"progress":1}`, l.Ticket, commit)
	l = r.renewed("with more", `{"progress":2}`, l.Ticket, read, commit)
	if d := l.EndsBy.Sub(l.LastHeartbeat); d < stuck*19/20 || d > stuck {
		t.Errorf("it counts as stuck %v after the commit, want %v", d, stuck)
	}
}

// Where the lease is not known as it is, the store is read, which costs three calls at most.
func TestARenewalWithAReportReadsWhereTheLeaseIsNotKnown(t *testing.T) {
	t.Parallel()
	r, g := newReporting(t, leadership.TermPolicy{})
	r.renewed("without ticket or memory", `{"progress":1}`, "", read, commit)
	elsewhere, err := r.here.Renew(t.Context(), r.ann.lease("jobs", 1))
	require.NoError(t, err)
	r.renewed("with memory that is out of date", `{"progress":2}`, "", commit, read, commit)
	if elsewhere, err = r.here.Renew(t.Context(), r.ann.lease("jobs", 1)); err != nil {
		t.Fatal(err)
	}
	r.renewed("with an old ticket", `{"progress":3}`, g.Ticket, commit, read, commit)
	r.renewed("with an old ticket, and memory that is right", `{"progress":4}`, elsewhere.Ticket, commit)
}

func evict(t *testing.T, s *service.Service) leadership.Lease {
	t.Helper()
	l, err := s.Do(t.Context(), leadership.Order{Election: "jobs", Kind: leadership.OrderEvict, Reason: "it is no good", Actor: "ops"})
	require.NoError(t, err)
	return l
}

func TestNothingButAHeartbeatIsDecidedWithoutARead(t *testing.T) {
	t.Parallel()
	r, g := newReporting(t, leadership.TermPolicy{Budget: leadership.Counters{TokensUsed: 10}, Cooldown: time.Minute})
	l := r.renewed("within the budget", `{"tokensUsed":10}`, g.Ticket, commit)
	if _, err := r.report("a counter that falls", `{"tokensUsed":9}`, l.Ticket, read); !errors.Is(err, leadership.InvalidArgument) {
		t.Errorf("a counter that falls: got %v", err)
	}
	for _, rpcs := range [][]string{{read, commit}, {read}} { // the second as if the reply was lost
		_, err := r.report("a trip", `{"tokensUsed":11}`, l.Ticket, rpcs...)
		var e *leadership.Error
		if !errors.As(err, &e) || e.Code != leadership.LeaseLost || e.Reason != leadership.ReasonDeposed {
			t.Errorf("a trip: got %v, want LEASE_LOST with reason DEPOSED", err)
		}
	}
	events, err := r.here.Events(t.Context(), leadership.EventsRequest{Election: "jobs"})
	if err != nil || len(events) != 3 || events[2].Type != leadership.EventDeposed {
		t.Errorf("got events %+v, %v; want one deposed", events, err)
	}
}

// The end may be set while the write that was decided without it is under way: it is not done then.
func TestNoReportCarriesALeaseBeyondAnEndThatIsSetMeanwhile(t *testing.T) {
	t.Parallel()
	f := new(faults)
	p := newProject(t)
	s, other := service.New(p.open(t, f.option())), service.New(p.open(t))
	configure(t, s, "jobs", leadership.Config{Term: leadership.TermPolicy{StuckAfter: time.Hour}})
	ann := newAgent("ann")
	if _, err := s.Acquire(t.Context(), ann.ask("jobs")); err != nil {
		t.Fatal(err)
	}
	var evicted leadership.Lease
	f.plant("Commit", func(invoke func() error) error {
		evicted = evict(t, other)
		return invoke()
	})
	c := ann.lease("jobs", 1)
	c.Report = []byte(`{"progress":1}`)
	l, err := s.Renew(t.Context(), c)
	if err != nil || !l.EndsBy.Equal(evicted.EndsBy) || l.EndsBecause != leadership.EndsEvicted || l.LeaseExpiration.After(evicted.EndsBy) {
		t.Errorf("it ends at %v by %v (%s), %v; want %v, evicted", l.LeaseExpiration, l.EndsBy, l.EndsBecause, err, evicted.EndsBy)
	}
}

// A report that was decided without a read counts only if it is committed before the end of the
// term, though the lease would last longer, and however much progress it tells of.
func TestALateReportDoesNotReviveTheLease(t *testing.T) {
	t.Parallel()
	f := new(faults)
	p := newProject(t)
	s, other := service.New(p.open(t, f.option())), p.open(t)
	configure(t, s, "jobs", leadership.Config{Term: leadership.TermPolicy{MaxTerm: leadership.MinOrder, StuckAfter: time.Hour}})
	ann := newAgent("ann")
	g, err := s.Acquire(t.Context(), ann.ask("jobs"))
	require.NoError(t, err)
	f.plant("Commit", func(invoke func() error) error {
		untilOver(t, other)
		err := invoke()
		if snap, lost := other.Get(t.Context(), "jobs"); lost != nil || snap.Live() || !snap.Record.LeaseEnd().Equal(g.LeaseExpiration) {
			t.Errorf("late: live %v, ends at %v, %v; want it to have ended at %v", snap.Live(), snap.Record.LeaseEnd(), lost, g.LeaseExpiration)
		}
		return err
	})
	c := ann.lease("jobs", 1)
	c.Report = []byte(`{"progress":1}`)
	if _, err := s.Renew(t.Context(), c); !errors.Is(err, leadership.LeaseLost) {
		t.Errorf("got %v, want LEASE_LOST", err)
	}
	if snap, err := other.Get(t.Context(), "jobs"); err != nil || snap.Record.LeaderID != "" || !snap.Record.EndedAt.Equal(g.LeaseExpiration) {
		t.Errorf("%q leads, ended at %v, %v; want no leader since %v", snap.Record.LeaderID, snap.Record.EndedAt, err, g.LeaseExpiration)
	}
}
