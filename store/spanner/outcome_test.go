package spanner

import (
	"context"
	"errors"
	"path"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"regent/leadership"
	"regent/leadership/rule"
)

// reply is what becomes of one Commit, or of every one that follows.
type reply struct {
	stall  func()     // returns when it may be sent
	lose   bool       // it is sent, and done
	answer codes.Code // what the caller gets to hear; OK for the server's own answer
}

// network answers the Commits of a store as the test says, and passes on whatever the test does not
// speak of.
type network struct {
	mu      sync.Mutex
	replies []reply
	then    func() // runs once the last reply was given
}

func (n *network) next() (reply, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.replies) == 0 {
		return reply{}, false
	}
	r := n.replies[0]
	if n.replies = n.replies[1:]; len(n.replies) == 0 && n.then != nil {
		n.then()
	}
	return r, true
}

func (n *network) intercept(ctx context.Context, method string, req, res any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if path.Base(method) != "Commit" {
		return invoke(ctx, method, req, res, cc, opts...)
	}
	r, told := n.next()
	if r.stall != nil {
		r.stall()
	}
	if !told || r.answer == codes.OK {
		return invoke(ctx, method, req, res, cc, opts...)
	}
	if r.lose {
		if err := invoke(ctx, method, req, res, cc, opts...); err != nil {
			return err
		}
	}
	return status.Error(r.answer, "planted")
}

// plan sets what becomes of the next Commits.
func (n *network) plan(replies ...reply) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.replies = replies
}

// unreliable opens a store whose Commits go as told, and a second handle that is whole.
func unreliable(t *testing.T, n *network) (s, whole *Store) {
	cfg := migrated(t)
	return through(t, n, cfg), opened(t, cfg)
}

// through opens a store whose Commits go as told.
func through(t *testing.T, n *network, cfg Config) *Store {
	cfg.DialOptions = []grpc.DialOption{grpc.WithChainUnaryInterceptor(n.intercept)}
	return opened(t, cfg)
}

func TestAFailedCommitIsRefusedOrUnknownOrDoneAgain(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		replies []reply
		want    leadership.Code // "" for done
		token   leadership.Token
	}{
		"refused for good":                         {[]reply{{answer: codes.PermissionDenied}}, leadership.StoreUnavailable, 0},
		"refused for lack of something":            {[]reply{{answer: codes.ResourceExhausted}, {answer: codes.FailedPrecondition}}, leadership.StoreUnavailable, 0},
		"the database was dropped":                 {[]reply{{answer: codes.NotFound}}, leadership.StoreUnavailable, 0},
		"aborted, then done":                       {[]reply{{answer: codes.Aborted}, {answer: codes.Aborted}}, "", 1},
		"reply lost, asked again, done":            {[]reply{{lose: true, answer: codes.Unavailable}}, "", 1},
		"done, and the reply is lost":              {[]reply{{lose: true, answer: codes.DeadlineExceeded}}, leadership.OutcomeUnknown, 1},
		"not done, and the reply is lost":          {[]reply{{answer: codes.DeadlineExceeded}}, leadership.OutcomeUnknown, 0},
		"the server does not know either":          {[]reply{{answer: codes.Unknown}}, leadership.OutcomeUnknown, 0},
		"reply lost, asked again, and then denied": {[]reply{{lose: true, answer: codes.Unavailable}, {answer: codes.PermissionDenied}}, leadership.OutcomeUnknown, 1},
		"a row is there that cannot be":            {[]reply{{answer: codes.AlreadyExists}}, leadership.RecordCorrupt, 0},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, whole := unreliable(t, &network{replies: c.replies})
			_, err := s.Update(t.Context(), "jobs", rule.Expect{}, acquire("ann"))
			if c.want == "" && err != nil || c.want != "" && !errors.Is(err, c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			for _, other := range []leadership.Code{leadership.StoreUnavailable, leadership.OutcomeUnknown, leadership.RecordCorrupt} {
				if other != c.want && errors.Is(err, other) {
					t.Errorf("%v has the code %s too", err, other)
				}
			}
			snap, err := whole.Get(t.Context(), "jobs")
			if err != nil || snap.Record.Token != c.token {
				t.Errorf("the token is %d, %v; want %d", snap.Record.Token, err, c.token)
			}
		})
	}
}

// lockDelay configures the election, if it is at the revision (0: at any).
func lockDelay(d time.Duration, at leadership.Revision) func(rule.Snapshot) (rule.Change, error) {
	return func(s rule.Snapshot) (rule.Change, error) {
		return rule.Apply(s, leadership.Configure{Config: leadership.Config{LockDelay: d}, IfRevision: at})
	}
}

// lostThenAborted loses the reply of a Commit that is done, and has the client run the transaction
// again.
func lostThenAborted() []reply {
	return []reply{{lose: true, answer: codes.Unavailable}, {answer: codes.Aborted}}
}

func TestAChangeThatIsRefusedAfterItsReplyWasLostIsUnknown(t *testing.T) {
	t.Parallel()
	n := new(network)
	s, whole := unreliable(t, n)
	granted(t, whole, 1)
	n.then = func() { // another operator comes between the two runs
		if _, err := whole.Update(t.Context(), "e000", rule.Expect{}, lockDelay(time.Minute, 0)); err != nil {
			t.Error(err)
		}
	}
	n.plan(lostThenAborted()...)
	snap, err := s.Update(t.Context(), "e000", rule.Expect{}, lockDelay(time.Second, 1))
	if !errors.Is(err, leadership.OutcomeUnknown) || errors.Is(err, leadership.RevisionMismatch) || errors.Is(err, leadership.StoreUnavailable) {
		t.Errorf("got %+v, %v; want %s only", snap, err, leadership.OutcomeUnknown)
	}
	if events, err := whole.Events(t.Context(), "e000", 1, 9); err != nil || len(events) != 2 {
		t.Errorf("got %v, %v; want an event of each operator", events, err)
	}
}

func TestAChangeThatIsFoundDoneAfterItsReplyWasLostIsDone(t *testing.T) {
	t.Parallel()
	n := new(network)
	s, whole := unreliable(t, n)
	granted(t, whole, 1)
	n.plan(lostThenAborted()...)
	snap, err := s.Update(t.Context(), "e000", rule.Expect{}, lockDelay(time.Second, 1))
	if err != nil || snap.Record.Revision != 2 || snap.Record.Policy.Config.LockDelay != time.Second {
		t.Errorf("got %+v, %v; want it done", snap.Record, err)
	}
}

func TestARefusalIsNoUnknownOutcomeIfNoReplyWasLost(t *testing.T) {
	t.Parallel()
	n := new(network)
	s, whole := unreliable(t, n)
	granted(t, whole, 1)
	n.then = func() {
		if _, err := whole.Update(t.Context(), "e000", rule.Expect{}, lockDelay(time.Minute, 0)); err != nil {
			t.Error(err)
		}
	}
	n.plan(reply{answer: codes.Aborted})
	_, err := s.Update(t.Context(), "e000", rule.Expect{}, lockDelay(time.Second, 1))
	if !errors.Is(err, leadership.RevisionMismatch) || errors.Is(err, leadership.OutcomeUnknown) {
		t.Errorf("got %v, want %s", err, leadership.RevisionMismatch)
	}
}

func TestFailedCommitFailsTheWholeBatch(t *testing.T) {
	t.Parallel()
	n := new(network)
	s, _ := unreliable(t, n)
	leases := append(granted(t, s, 3), renewalOf("unseen", "ann", 1))
	for _, c := range []struct {
		reply reply
		want  leadership.Code
	}{{reply{answer: codes.PermissionDenied}, leadership.StoreUnavailable}, {reply{lose: true, answer: codes.DeadlineExceeded}, leadership.OutcomeUnknown}} {
		n.plan(c.reply)
		for i, a := range s.Renew(t.Context(), leases) {
			if !errors.Is(a.Err, c.want) {
				t.Errorf("renewal %d: %v, want %s", i, a.Err, c.want)
			}
		}
	}
}

func TestAContextThatEndsWhileTheCommitIsRepeatedLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s, _ := unreliable(t, &network{replies: []reply{{lose: true, answer: codes.Unavailable}}, then: cancel})
	_, err := s.Update(ctx, "jobs", rule.Expect{}, acquire("ann"))
	if !errors.Is(err, leadership.OutcomeUnknown) || !errors.Is(err, context.Canceled) || errors.Is(err, leadership.StoreUnavailable) {
		t.Errorf("got %v, want %s because of %v", err, leadership.OutcomeUnknown, context.Canceled)
	}
}

func TestATransactionThatIsAbortedUntilTheContextEndsHasDoneNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s, _ := unreliable(t, &network{replies: []reply{{answer: codes.Aborted}, {answer: codes.Aborted}, {answer: codes.Aborted}}, then: cancel})
	_, err := s.Update(ctx, "jobs", rule.Expect{}, acquire("ann"))
	if !errors.Is(err, leadership.StoreUnavailable) || !errors.Is(err, context.Canceled) || errors.Is(err, leadership.OutcomeUnknown) {
		t.Errorf("got %v, want %s because of %v", err, leadership.StoreUnavailable, context.Canceled)
	}
}

func TestAStoreThatIsGoneIsUnavailableWithinTheTimeout(t *testing.T) {
	t.Parallel()
	cfg := migrated(t)
	cfg.CallTimeout = 2 * time.Second // enough to open it on a busy machine
	gone := make(chan struct{})
	cfg.DialOptions = []grpc.DialOption{
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			select {
			case <-gone:
				return nil, status.Error(codes.Unavailable, "planted")
			default:
				return open(ctx, desc, cc, method, opts...)
			}
		}),
	}
	s := opened(t, cfg)
	close(gone)
	_, err := s.Get(t.Context(), "jobs")
	if !errors.Is(err, leadership.StoreUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("get: %v", err)
	}
	_, err = s.Update(t.Context(), "jobs", rule.Expect{}, acquire("ann"))
	if !errors.Is(err, leadership.StoreUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("update: %v", err)
	}
	if a := s.Renew(t.Context(), []rule.Renewal{renewalOf("jobs", "ann", 1)}); !errors.Is(a[0].Err, leadership.StoreUnavailable) {
		t.Errorf("renew: %v", a[0].Err)
	}
}

func TestOnlyAnAnswerThatRefusesSettlesACommit(t *testing.T) {
	t.Parallel()
	open := map[codes.Code]bool{codes.Canceled: true, codes.Unknown: true, codes.DeadlineExceeded: true, codes.Internal: true, codes.Unavailable: true, codes.DataLoss: true}
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		if settles(c) == open[c] {
			t.Errorf("%v settles a commit: %v", c, settles(c))
		}
	}
}
