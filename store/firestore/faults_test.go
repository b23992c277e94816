package firestore_test

import (
	"context"
	"errors"
	"net"
	"path"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/firestore"
	"regent/store/storetest"
)

// fault does to a unary call what a network or a server might.
type fault func(invoke func() error) error

// faults lets a test put a fault before one kind of call.
type faults struct {
	next atomic.Pointer[planted]
}

type planted struct {
	method string
	fault  fault
}

// plant puts a fault before the next call of the method.
func (f *faults) plant(method string, do fault) { f.next.Store(&planted{method, do}) }

func (f *faults) option() grpc.DialOption {
	return grpc.WithUnaryInterceptor(f.intercept)
}

func (f *faults) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	call := func() error { return invoke(ctx, method, req, reply, cc, opts...) }
	if p := f.next.Load(); p != nil && p.method == path.Base(method) && f.next.CompareAndSwap(p, nil) {
		return p.fault(call)
	}
	return call()
}

// replyLost makes the call and loses what comes back.
func replyLost(code codes.Code) fault {
	return func(invoke func() error) error {
		if err := invoke(); err != nil {
			return err
		}
		return status.Error(code, "planted: the reply is lost")
	}
}

// refusedFirst refuses the call without making it, as a server would that answered so.
func refusedFirst(code codes.Code) fault {
	return func(func() error) error { return status.Error(code, "planted: refused") }
}

func TestAChangeWhoseReplyIsLostIsUnknownAndAskingAgainFindsOut(t *testing.T) {
	t.Parallel()
	f := new(faults)
	s := newProject(t).open(t, f.option())
	service, ann := service.New(s), newAgent("ann")
	f.plant("Commit", replyLost(codes.Unavailable))
	if _, err := service.Acquire(t.Context(), ann.ask("jobs")); !errors.Is(err, leadership.OutcomeUnknown) {
		t.Fatalf("a grant: got %v, want OUTCOME_UNKNOWN", err)
	}
	g, err := service.Acquire(t.Context(), ann.ask("jobs"))
	if err != nil || g.Token != 1 {
		t.Fatalf("asked again: got token %d, %v; want 1", g.Token, err)
	}
	f.plant("Commit", replyLost(codes.DeadlineExceeded))
	if got := s.Renew(t.Context(), []rule.Renewal{ann.renewal("jobs", 1)})[0].Err; !errors.Is(got, leadership.OutcomeUnknown) {
		t.Fatalf("a renewal: got %v, want OUTCOME_UNKNOWN", got)
	}
	if _, err := service.Renew(t.Context(), ann.lease("jobs", 1)); err != nil {
		t.Fatalf("renewed again: %v", err)
	}
}

func TestABatchWhoseReplyIsLostIsUnknownForEachLease(t *testing.T) {
	t.Parallel()
	f := new(faults)
	s := newProject(t).open(t, f.option())
	service, ann := service.New(s), newAgent("ann")
	batch := []rule.Renewal{ann.renewal("a", 1), ann.renewal("b", 1), ann.renewal("c", 1)}
	for _, c := range batch[:2] {
		if _, err := service.Acquire(t.Context(), ann.ask(c.Election)); err != nil {
			t.Fatal(err)
		}
	}
	f.plant("BatchWrite", replyLost(codes.Unavailable))
	for i, a := range s.Renew(t.Context(), batch) {
		want := error(leadership.OutcomeUnknown)
		if i == 2 {
			want = rule.ErrNotRenewed // it was never granted, so nothing was sent
		}
		if !errors.Is(a.Err, want) {
			t.Errorf("%s: got %v, want %v", batch[i].Election, a.Err, want)
		}
	}
	f.plant("BatchWrite", replyLost(codes.Unavailable))
	if err := s.MarkAnnounced(t.Context(), []leadership.EventID{{Election: "a", Revision: 1}}); !errors.Is(err, leadership.OutcomeUnknown) {
		t.Errorf("a mark: got %v, want OUTCOME_UNKNOWN", err)
	}
}

func TestContentionIsTriedAgainAndGivenUpWithTheContext(t *testing.T) {
	t.Parallel()
	f := new(faults)
	s := newProject(t).open(t, f.option())
	service, ann := service.New(s), newAgent("ann")
	f.plant("Commit", refusedFirst(codes.Aborted))
	if g, err := service.Acquire(t.Context(), ann.ask("jobs")); err != nil || g.Token != 1 {
		t.Fatalf("got token %d, %v; want 1", g.Token, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.plant("Commit", func(func() error) error {
		cancel()
		return status.Error(codes.Aborted, "planted: contention")
	})
	_, err := service.Do(ctx, leadership.Release{LeaseRequest: ann.lease("jobs", 1)})
	if !errors.Is(err, leadership.StoreUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want STORE_UNAVAILABLE and context.Canceled", err)
	}
}

func TestAHeartbeatBetweenTheReadAndTheCommitMakesATakeoverDecideAgain(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	a, b := p.open(t), p.open(t)
	ann := acquired(t, b, "jobs")
	decisions := 0
	snap, err := a.Update(t.Context(), "jobs", rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
		if decisions++; decisions == 1 {
			if got := b.Renew(t.Context(), []rule.Renewal{ann.renewal("jobs", 1)})[0]; got.Err != nil {
				t.Error(got.Err)
			}
			s.Now = s.Record.LeaseEnd().Add(s.Guard) // as if it were over
		}
		return rule.Expire(s)
	})
	if err != nil || decisions != 2 || !snap.Live() {
		t.Errorf("after %d decisions: live %v, %v; want 2, and the lease renewed", decisions, snap.Live(), err)
	}
}

func TestWithoutAServerNothingIsEverUnknown(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l.Close() // no server answers there
	s, err := firestore.Open(t.Context(), firestore.Config{Project: "p", Emulator: l.Addr().String()})
	require.NoError(t, err)
	defer s.Close()
	_, getErr := s.Get(t.Context(), "jobs")
	_, sinceErr := s.Since(t.Context(), time.Now(), 1)
	markErr := s.MarkAnnounced(t.Context(), []leadership.EventID{{Election: "jobs", Revision: 1}})
	for _, err := range []error{getErr, sinceErr, markErr} {
		if !errors.Is(err, leadership.StoreUnavailable) || errors.Is(err, leadership.OutcomeUnknown) {
			t.Errorf("got %v, want STORE_UNAVAILABLE", err)
		}
	}
}

func TestAConnectionThatBreaksOnceTheRequestHasArrivedLeavesItUnknown(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var server *grpc.Server
	server = grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		go server.Stop()
		<-stream.Context().Done()
		return stream.Context().Err()
	}))
	go server.Serve(l)
	s, err := firestore.Open(t.Context(), firestore.Config{Project: "p", Emulator: l.Addr().String()})
	require.NoError(t, err)
	defer s.Close()
	err = s.MarkAnnounced(t.Context(), []leadership.EventID{{Election: "jobs", Revision: 1}})
	if !errors.Is(err, leadership.OutcomeUnknown) {
		t.Errorf("got %v, want OUTCOME_UNKNOWN", err)
	}
}

func TestALateRenewalDoesNotReviveTheLease(t *testing.T) {
	t.Parallel()
	f := new(faults)
	p := newProject(t)
	slow, other := p.open(t, f.option()), p.open(t)
	service, ann := service.New(slow), newAgent("ann")
	ask := ann.ask("jobs")
	ask.LeaseDuration = leadership.MinLeaseDuration
	g, err := service.Acquire(t.Context(), ask)
	require.NoError(t, err)
	f.plant("Commit", func(invoke func() error) error {
		untilOver(t, other)
		return invoke()
	})
	answer := slow.Renew(t.Context(), []rule.Renewal{ann.renewal("jobs", 1)})[0]
	if answer.Err != nil {
		t.Fatalf("the heartbeat was not written: %v", answer.Err)
	}
	if !answer.Before.Equal(g.LeaseExpiration) || answer.Now.Before(answer.Before) {
		t.Fatalf("committed at %v, due before %v; the lease ended at %v", answer.Now, answer.Before, g.LeaseExpiration)
	}
	// The late renewal is not undone yet, as if the process had died here.
	for name, s := range map[string]*firestore.Store{"here": slow, "elsewhere": other} {
		snap, err := s.Get(t.Context(), "jobs")
		if err != nil || snap.Live() || !snap.Record.LeaseEnd().Equal(g.LeaseExpiration) {
			t.Errorf("%s: live %v, ends at %v, %v; want it to have ended at %v", name, snap.Live(), snap.Record.LeaseEnd(), err, g.LeaseExpiration)
		}
	}
	if _, err := service.Renew(t.Context(), ann.lease("jobs", 1)); !errors.Is(err, leadership.LeaseLost) {
		t.Errorf("renewed again: got %v, want LEASE_LOST", err)
	}
}

// untilOver waits until the store says that the lease is over: the store's clock is the only one
// that counts.
func untilOver(t *testing.T, s *firestore.Store) {
	for {
		snap, err := s.Get(t.Context(), "jobs")
		if err != nil {
			t.Error(err)
			return
		}
		if !snap.Live() {
			return
		}
		select {
		case <-time.After(snap.Record.LeaseEnd().Sub(snap.Now)):
		case <-t.Context().Done():
			return
		}
	}
}

func TestAGuardThatFailedIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	rpcs := new(storetest.RPCs)
	s, other := p.open(t, grpc.WithStatsHandler(rpcs)), p.open(t)
	ann := acquired(t, s, "jobs")
	if _, err := service.New(other).Renew(t.Context(), ann.lease("jobs", 1)); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{"Commit"}, nil} {
		rpcs.Take()
		if got := s.Renew(t.Context(), []rule.Renewal{ann.renewal("jobs", 1)})[0].Err; !errors.Is(got, rule.ErrNotRenewed) {
			t.Errorf("got %v, want ErrNotRenewed", got)
		}
		if diff := cmp.Diff(want, rpcs.Take()); diff != "" {
			t.Errorf("RPCs (-want +got):\n%s", diff)
		}
	}
}
