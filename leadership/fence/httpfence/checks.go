package httpfence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/leadership/fence"
)

// Regent answers :checkToken. A *client.Client is one.
type Regent interface {
	// CheckToken returns the lease if the token is that of the present leader, and TokenStale if not, as the store has it at some moment during
	// the call. It must heed its ctx.
	CheckToken(ctx context.Context, r leadership.TokenCheck) (leadership.Lease, error)
}

// For how long Regent's word is taken.
const (
	DefaultMaxAge = 2 * time.Second
	MaxMaxAge     = 10 * time.Second
)

// How much is kept, and asked at once.
const (
	DefaultElections = 10_000
	DefaultAsks      = 100
)

// ChecksConfig is how Checks are made. Regent is required.
type ChecksConfig struct {
	Regent Regent
	// MaxAge is for how long it is believed that a token is that of the present leader, and so how long Regent may take to answer: at
	// most MaxMaxAge; 0 for DefaultMaxAge. That is how long a leader that was succeeded may still get in, where no news is heard.
	MaxAge time.Duration
	// Elections is how many are remembered; 0 for DefaultElections. To forget one costs a question.
	Elections int
	// Asks is how many questions may be under way; 0 for DefaultAsks. Who would be one more is told StoreUnavailable.
	Asks int
	// Now is a clock that never goes back, that nobody can set, and that runs while the machine is suspended; nil for boottime.Now.
	Now func() time.Duration
}

func (c ChecksConfig) validate() error {
	switch {
	case c.Regent == nil:
		return errors.New("httpfence: Regent is missing")
	case c.MaxAge < 0 || c.MaxAge > MaxMaxAge:
		return fmt.Errorf("httpfence: MaxAge is from 0s to %v, not %v", MaxMaxAge, c.MaxAge)
	case c.Elections < 0 || c.Asks < 0:
		return fmt.Errorf("httpfence: Elections and Asks are 0 or more, not %d and %d", c.Elections, c.Asks)
	}
	return nil
}

// Checks asks Regent about tokens, and remembers what it said.
//
//   - That a token is the present leader's is believed for MaxAge and within the lease that was seen, both counted from before the question, on
//     a clock that runs while the machine is suspended; and no longer than until a later leader or the end of the lease is heard of.
//   - That a token was overtaken is true for ever: tokens never come back. The newest token of an election, one number, says it of all before.
//   - That a token was never granted, or that its lease seems to be over, is not remembered: the next moment may know better.
//
// Who asks the same at the same time shares one question; but the answer that is not remembered is for those alone who came before the question
// was put. If Regent cannot be reached, or takes longer than MaxAge, the error is StoreUnavailable, unless what is remembered will do.
//
// All methods may be called at the same time.
type Checks struct {
	regent    Regent
	maxAge    time.Duration
	elections int
	most      int
	now       func() time.Duration

	asks sync.WaitGroup

	mu     sync.Mutex // guards all below
	terms  map[leadership.Election]*term
	asking int
}

// NewChecks returns Checks that know nothing yet. An error says what is wrong with the config.
func NewChecks(config ChecksConfig) (*Checks, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	c := &Checks{
		regent:    config.Regent,
		maxAge:    cmp.Or(config.MaxAge, DefaultMaxAge),
		elections: cmp.Or(config.Elections, DefaultElections),
		most:      cmp.Or(config.Asks, DefaultAsks),
		now:       config.Now,
		terms:     map[leadership.Election]*term{},
	}
	if c.now == nil {
		c.now = boottime.Now
	}
	return c, nil
}

// Wait waits for the questions that are under way although those who put them have gone; that takes MaxAge at most. It is to be called when Check
// will not be called any more.
func (c *Checks) Wait() { c.asks.Wait() }

// Check returns nil if the token of w is that of the present leader of its election, as far as the above goes. It blocks until that is known,
// Regent has failed, or ctx ends. Errors: TokenStale, whoever is told this stops; InvalidArgument, as Mark.Admit has it; StoreUnavailable,
// if it is not known.
func (c *Checks) Check(ctx context.Context, w fence.Mark) error {
	if _, err := (fence.Mark{}).Admit(w); err != nil {
		return err
	}
	for again := false; ; again = true {
		a, own, err := c.join(ctx, w)
		if a == nil {
			return err
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			return unknown("waiting for Regent: %w", context.Cause(ctx))
		}
		// A question that others put before this call may have been answered before the token was granted. The next one was not.
		if err, final := c.verdict(a); final || own || again {
			return err
		}
	}
}

// Heard forgets what the event has made untrue. It does not block.
func (c *Checks) Heard(e leadership.Event) {
	ends := e.LeaderID == "" && e.PreviousLeaderID != ""
	c.learn(e.Election, e.Token, ends, ends)
}

// Saw is Heard for an election as it was read: what a watch begins with, say. That nobody leads it may not be the last word on its lease, so
// Regent is asked again.
func (c *Checks) Saw(l leadership.Lease) {
	c.learn(l.Election, l.Token, l.State != leadership.Held, false)
}

func (c *Checks) learn(e leadership.Election, token leadership.Token, doubtful, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t, ok := c.terms[e]; ok {
		t.learn(token, doubtful, ended)
	}
}
