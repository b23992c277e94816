package spanner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"regent/leadership"
	"regent/leadership/rule"
)

// locks let renewals of some rows take too long, as if another transaction had locked the rows: the
// emulator has no locks on rows. What takes too long is answered at once with DEADLINE_EXCEEDED.
type locks struct {
	mu    sync.Mutex
	held  func(elections []string, within time.Duration) bool // whether a renewal that has to be done within that time waits in vain
	tries [][]string                                          // the elections of each renewal, in the order in which they were sent
}

func (l *locks) open(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, cc, method, opts...)
	return lockedStream{stream, l}, err
}

type lockedStream struct {
	grpc.ClientStream
	locks *locks
}

func (s lockedStream) SendMsg(m any) error {
	r, ok := m.(*spannerpb.ExecuteSqlRequest)
	if !ok || !strings.HasSuffix(r.GetRequestOptions().GetRequestTag(), "renew") {
		return s.ClientStream.SendMsg(m)
	}
	var elections []string
	for _, v := range r.Params.Fields["elections"].GetListValue().Values {
		elections = append(elections, v.GetStringValue())
	}
	end, _ := s.Context().Deadline()
	if s.locks.holds(elections, time.Until(end)) {
		return status.Error(codes.DeadlineExceeded, "planted")
	}
	return s.ClientStream.SendMsg(m)
}

func (l *locks) holds(elections []string, within time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tries = append(l.tries, elections)
	return l.held(elections, within)
}

// locked opens a store whose renewals may wait, and grants n leases in it. It divides renewals, but
// not because the machine is slow.
func locked(t *testing.T, l *locks, n *network, leases int) (*Store, []rule.Renewal) {
	cfg := migrated(t)
	cfg.DialOptions = []grpc.DialOption{grpc.WithChainStreamInterceptor(l.open), grpc.WithChainUnaryInterceptor(n.intercept)}
	s := opened(t, cfg)
	s.patience = cfg.patience()
	return s, granted(t, s, leases)
}

func TestALockedRowDoesNotKeepOtherLeasesFromBeingRenewed(t *testing.T) {
	t.Parallel()
	l := &locks{held: func(elections []string, within time.Duration) bool { return slices.Contains(elections, "e017") }}
	s, leases := locked(t, l, new(network), 100)
	for i, a := range s.Renew(t.Context(), leases) {
		if e := leases[i].Election; e == "e017" {
			if !errors.Is(a.Err, leadership.StoreUnavailable) || errors.Is(a.Err, leadership.OutcomeUnknown) {
				t.Errorf("the one that is locked: %v, want %s", a.Err, leadership.StoreUnavailable)
			}
		} else if a.Err != nil || a.Record.Election != e || !a.Now.Before(a.Before) {
			t.Fatalf("%s: %v, want it renewed before %v", e, a.Err, a.Before)
		}
	}
}

func TestARenewalOfSeveralLeasesIsTriedForAFewSecondsOnly(t *testing.T) {
	t.Parallel()
	if p := (Config{}).patience(); p < 2*time.Second || p > 3*time.Second {
		t.Errorf("by default it is tried for %v, want 2 to 3 s", p)
	}
	var within time.Duration
	l := &locks{held: func(_ []string, w time.Duration) bool { within = w; return false }}
	s, leases := locked(t, l, new(network), 2)
	for n, most := range []time.Duration{1: s.timeout, 2: s.patience} {
		if s.Renew(t.Context(), leases[:n]); within > most || n == 1 && within < s.patience {
			t.Errorf("%d leases have to be renewed within %v, want %v", n, within, most)
		}
	}
}

func TestAStoreThatIsSlowAsAWholeGetsAllTheTimeThatThereIs(t *testing.T) {
	t.Parallel()
	l := new(locks)
	s, leases := locked(t, l, new(network), 20)
	l.held = func(_ []string, within time.Duration) bool { return within <= s.patience }
	for i, a := range s.Renew(t.Context(), leases) {
		if a.Err != nil {
			t.Errorf("%s: %v", leases[i].Election, a.Err)
		}
	}
	for _, elections := range l.tries {
		if len(elections) == 1 {
			t.Errorf("a renewal of %v alone, want pieces of several leases: no row was to blame", elections)
		}
	}
}

func TestARenewalThatMayHaveBeenDoneIsSentAgainInPieces(t *testing.T) {
	t.Parallel()
	n := new(network)
	s, leases := locked(t, &locks{held: func([]string, time.Duration) bool { return false }}, n, 10)
	n.plan(reply{lose: true, answer: codes.DeadlineExceeded})
	ends := make(map[leadership.Election]time.Time)
	n.then = func() {
		for _, c := range leases {
			snap, err := s.Get(t.Context(), c.Election)
			if err != nil {
				t.Error(err)
			}
			ends[c.Election] = snap.Record.LeaseEnd()
		}
	}
	for i, a := range s.Renew(t.Context(), leases) {
		if a.Err != nil || a.Before.Before(ends[leases[i].Election]) || !a.Now.Equal(a.Snapshot().Record.HeartbeatAt) {
			t.Fatalf("%s: %v, want it renewed; its end was %v, want %v or later", leases[i].Election, a.Err, a.Before, ends[leases[i].Election])
		}
	}
}

func TestAnUnknownOutcomeStaysUnknownIfThePiecesAreRefused(t *testing.T) {
	t.Parallel()
	n := new(network)
	s, leases := locked(t, &locks{held: func([]string, time.Duration) bool { return false }}, n, 3)
	refused := reply{answer: codes.PermissionDenied}
	n.plan(reply{lose: true, answer: codes.DeadlineExceeded}, refused, refused, refused)
	for i, a := range s.Renew(t.Context(), leases) {
		if !errors.Is(a.Err, leadership.OutcomeUnknown) || errors.Is(a.Err, leadership.StoreUnavailable) {
			t.Errorf("%s: %v, want %s only", leases[i].Election, a.Err, leadership.OutcomeUnknown)
		}
	}
}

func TestAPanicInAPieceIsTheCallers(t *testing.T) {
	t.Parallel()
	s, leases := locked(t, &locks{held: func(elections []string, _ time.Duration) bool {
		if len(elections) < 10 {
			panic("planted")
		}
		return true
	}}, new(network), 10)
	defer func() {
		if v := recover(); v != "planted" {
			t.Errorf("caught %v, want the panic", v)
		}
	}()
	s.Renew(t.Context(), leases)
}

func TestPiecesHaveEveryLeaseOnceUntilTheyAreSingle(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 7, 8, 9, 17, 64, 100, leadership.MaxBatch} {
		leases := make([]rule.Renewal, n)
		for i := range leases {
			leases[i].Election = leadership.Election(fmt.Sprint(i))
		}
		rounds := 0
		for pieces := divide([]piece{{leases, make([]rule.Renewed, n)}}); len(pieces) > 0; pieces = divide(pieces) {
			rounds++
			next := 0 // of those that are not single yet
			for _, p := range pieces {
				if len(p.leases) == 0 || len(p.leases) != len(p.answers) {
					t.Fatalf("a piece of %d leases and %d answers", len(p.leases), len(p.answers))
				}
				next += len(p.leases)
			}
			if rounds == 1 && next != n {
				t.Errorf("%d leases in the pieces of %d", next, n)
			}
		}
		if rounds > 3 {
			t.Errorf("%d leases are single after %d rounds, want 3 at most", n, rounds)
		}
	}
}
