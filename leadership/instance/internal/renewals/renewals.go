package renewals

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// Limits of batches.
const (
	// MaxTogether is how many renewals one batch may have.
	MaxTogether = 100
	// Patience is how long a batch may take before the next one is sent beside it.
	Patience = 250 * time.Millisecond
)

// Store is a store whose renewals of single leases are sent in batches. All other calls go straight
// to the store, even renewals that the caller has already put in a batch.
type Store struct {
	service.Store

	mu      sync.Mutex // guards all below
	waiting []*call    // in the order in which they came
	newest  *batch     // the batch that waiting calls wait for; nil: none, or it is slow
}

// New returns a Store on the given one.
func New(s service.Store) *Store { return &Store{Store: s} }

// call is one renewal and its caller.
type call struct {
	ctx   context.Context
	lease rule.Renewal
	sent  *batch        // nil while it waits; guarded by Store.mu
	done  chan struct{} // closed once one of the following is set
	is    rule.Renewed
	panic any // of the store
}

// batch is some calls that are sent together.
type batch struct {
	calls  []*call
	slow   *time.Timer
	cancel context.CancelFunc
	left   int // how many of the calls still have a caller; guarded by Store.mu
}

// Renew implements service.Store. A caller whose context ends gets its answer at once:
// StoreUnavailable if its renewal was not sent, OutcomeUnknown if it was. The batch goes on while
// another caller waits for it. A panic of the store is a panic of all callers in the batch.
func (s *Store) Renew(ctx context.Context, leases []rule.Renewal) []rule.Renewed {
	if len(leases) != 1 {
		return s.Store.Renew(ctx, leases)
	}
	return []rule.Renewed{s.renew(ctx, leases[0])}
}

func (s *Store) renew(ctx context.Context, lease rule.Renewal) rule.Renewed {
	c := &call{ctx: ctx, lease: lease, done: make(chan struct{})}
	if ctx.Err() != nil {
		return c.cancelled(leadership.StoreUnavailable)
	}
	s.mu.Lock()
	s.waiting = append(s.waiting, c)
	s.send()
	s.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
		if answer, gone := s.leave(c); gone {
			return answer
		}
	}
	if c.panic != nil {
		panic(c.panic)
	}
	return c.is
}

// leave removes a renewal whose caller was cancelled from those that wait, if it was not sent yet,
// and returns the caller's answer. It reports false if there is an answer already.
func (s *Store) leave(c *call) (rule.Renewed, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-c.done:
		return rule.Renewed{}, false
	default:
	}
	if c.sent == nil {
		i := slices.Index(s.waiting, c)
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return c.cancelled(leadership.StoreUnavailable), true
	}
	if c.sent.left--; c.sent.left == 0 {
		c.sent.cancel()
	}
	return c.cancelled(leadership.OutcomeUnknown), true
}

func (c *call) cancelled(code leadership.Code) rule.Renewed {
	return rule.Renewed{Err: fmt.Errorf("renew %q: %w: caller cancelled: %w", c.lease.Election, code, c.ctx.Err())}
}

// send sends the batches that are due. Call with mu held.
func (s *Store) send() {
	for len(s.waiting) > 0 && (s.newest == nil || len(s.waiting) >= MaxTogether) {
		b := &batch{calls: s.next()}
		b.left = len(b.calls)
		// The batch has the context values of its first caller, for traces, and no caller's end.
		ctx, cancel := context.WithCancel(context.WithoutCancel(b.calls[0].ctx))
		b.cancel = cancel
		for _, c := range b.calls {
			c.sent = b
		}
		s.newest = b
		b.slow = time.AfterFunc(Patience, func() { s.pass(b) })
		go s.run(ctx, b)
	}
}

// next removes the calls of the next batch from those that wait.
func (s *Store) next() []*call {
	var calls, rest []*call
	named := make(map[leadership.Election]bool)
	for _, c := range s.waiting {
		if len(calls) == MaxTogether || named[c.lease.Election] {
			rest = append(rest, c)
			continue
		}
		named[c.lease.Election] = true
		calls = append(calls, c)
	}
	s.waiting = rest
	return calls
}

// pass lets waiting calls no longer wait for the batch.
func (s *Store) pass(b *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest == b {
		s.newest = nil
		s.send()
	}
}

// run sends the batch and gives each caller its answer.
func (s *Store) run(ctx context.Context, b *batch) {
	leases := make([]rule.Renewal, len(b.calls))
	for i, c := range b.calls {
		leases[i] = c.lease
	}
	var answers []rule.Renewed
	defer func() {
		failure := recover()
		if failure == nil && len(answers) != len(leases) {
			failure = fmt.Errorf("renewals: the store gave %d answers for %d renewals", len(answers), len(leases))
		}
		b.slow.Stop()
		b.cancel()
		for i, c := range b.calls {
			if c.panic = failure; failure == nil {
				c.is = answers[i]
			}
			close(c.done)
		}
		s.pass(b)
	}()
	answers = s.Store.Renew(ctx, leases)
}
