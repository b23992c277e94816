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

// Regent answers :checkToken. *client.Client implements it.
type Regent interface {
	// CheckToken returns the lease if the token is the current leader's, and TokenStale otherwise,
	// as the store has it at some moment during the call. It must honour ctx.
	CheckToken(ctx context.Context, r leadership.TokenCheck) (leadership.Lease, error)
}

// How long Regent's answer is believed.
const (
	DefaultMaxAge = 2 * time.Second
	MaxMaxAge     = 10 * time.Second
)

// Limits of memory and of concurrent calls.
const (
	DefaultElections = 10_000
	DefaultAsks      = 100
)

// ChecksConfig configures Checks. Regent is required.
type ChecksConfig struct {
	Regent Regent
	// MaxAge is how long a positive answer is believed, and how long Regent may take to answer: at
	// most MaxMaxAge; 0 for DefaultMaxAge. A former leader may get in for that long if no news
	// arrives.
	MaxAge time.Duration
	// Write asks whether the leader may write: Regent also refuses, with ReadOnly, while the
	// election has lost its quorum, and with NotReady, while a new leader has not said that it
	// serves (Config.Promotion). An answer from before that is believed for MaxAge, too. A Gate
	// before handlers that only read takes Checks without Write: reads go on.
	Write bool
	// Elections is how many elections are remembered; 0 for DefaultElections. A forgotten one costs
	// a call.
	Elections int
	// Asks is how many calls to Regent may be in progress; 0 for DefaultAsks. A request beyond that
	// is refused with StoreUnavailable.
	Asks int
	// Now is a monotonic clock that cannot be set and that runs while the machine is suspended; nil
	// for boottime.Now.
	Now func() time.Duration
}

func (c ChecksConfig) validate() error {
	switch {
	case c.Regent == nil:
		return errors.New("httpfence: Regent is missing")
	case c.MaxAge < 0 || c.MaxAge > MaxMaxAge:
		return fmt.Errorf("httpfence: MaxAge must be from 0s to %v, not %v", MaxMaxAge, c.MaxAge)
	case c.Elections < 0 || c.Asks < 0:
		return fmt.Errorf("httpfence: Elections and Asks must be 0 or more, not %d and %d", c.Elections, c.Asks)
	}
	return nil
}

// Checks asks Regent about tokens, and remembers its answers.
//
//   - A token that is the current leader's is believed for MaxAge and within the lease that was
//     seen, both counted from before the call, on a clock that runs while the machine is suspended;
//     and only until news of a later leader or of the end of the lease arrives.
//   - A token that was overtaken stays stale for ever: tokens never come back. The newest token of
//     an election, one number, is enough to refuse all lower ones.
//   - A token that was never granted, or whose lease seems to be over, is not remembered, nor that
//     the election is read-only or its leader not ready: that may change at any moment.
//
// Concurrent checks of one token share a call; but an answer that is not remembered is only for
// those that came before the call was made. If Regent cannot be reached, or takes longer than
// MaxAge, the error is StoreUnavailable, unless remembered facts are enough.
//
// All methods may be called concurrently.
type Checks struct {
	config ChecksConfig // with its defaults
	asks   sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	terms  map[leadership.Election]*term
	asking int
}

// NewChecks returns Checks that know nothing yet. It returns an error if the config is invalid.
func NewChecks(config ChecksConfig) (*Checks, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	config.MaxAge = cmp.Or(config.MaxAge, DefaultMaxAge)
	config.Elections = cmp.Or(config.Elections, DefaultElections)
	config.Asks = cmp.Or(config.Asks, DefaultAsks)
	if config.Now == nil {
		config.Now = boottime.Now
	}
	return &Checks{config: config, terms: map[leadership.Election]*term{}}, nil
}

// Wait blocks until the calls to Regent have ended that outlive their callers, for MaxAge at most.
// Call it when Check is not called any more.
func (c *Checks) Wait() { c.asks.Wait() }

// Check returns nil if w's token is the current leader's, as far as described above. It blocks
// until that is known, Regent has failed, or ctx ends. Errors: TokenStale and InvalidArgument, as
// for Mark.Admit; ReadOnly and NotReady, with ChecksConfig.Write (the leader must not write now);
// StoreUnavailable if it is not known.
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
		// A call that was made before this check may have been answered before the token was
		// granted. The next one was not.
		if err, final := c.verdict(a); final || own || again {
			return err
		}
	}
}

// Heard updates the memory after an event. It does not block.
func (c *Checks) Heard(e leadership.Event) {
	ends := e.LeaderID == "" && e.PreviousLeaderID != ""
	c.learn(e.Election, e.Token, ends, ends)
}

// Saw is Heard for the state of an election, such as the one that a watch begins with. A vacant
// election may not be final for its last lease, so Regent is asked again.
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
