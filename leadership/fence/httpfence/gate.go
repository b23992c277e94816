package httpfence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"regent/leadership"
	"regent/leadership/fence"
)

// Checker says whether a mark's token is that of the present leader. A *Checks is one.
type Checker interface {
	// Check returns nil if it is, and an error with the code TokenStale if it is not. Any other error is of one who could not find out.
	Check(ctx context.Context, w fence.Mark) error
}

// Config is how a Gate is made. Required are Election or Guarded, and Check or Marks.
type Config struct {
	// Election is the one that guards what the handler changes. Tokens of all others are refused.
	Election leadership.Election
	// Resource is what the handler changes, as the Marks know it; "" for the election's name.
	Resource string
	// Guarded takes the place of both where they depend on the request. The election must not be taken from the request as it stands there,
	// or a leader of anything leads everything. "" is for a request that no leader has a say in; it is answered with 404.
	Guarded func(*http.Request) (resource string, election leadership.Election)

	// Check is asked first.
	Check Checker
	// Marks are raised next. What they cannot compare does not get in.
	Marks Marks
	// Serial keeps the requests of two leaders of one resource apart in this process: those of a later leader wait until the handler has
	// returned from all those of an earlier one, whose contexts end meanwhile; of these no more are let in. Requests of one leader run side by
	// side, as ever. It needs Marks.
	Serial bool

	// Refused, if there is one, is told of each request that was not let in and why, with the causes that the reply hides: for a log and
	// for metrics. It may be called from many goroutines.
	Refused func(*http.Request, error)
}

func (c Config) validate() error {
	switch {
	case c.Check == nil && c.Marks == nil:
		return errors.New("httpfence: there is nothing to compare tokens with: set Check, Marks or both")
	case c.Serial && c.Marks == nil:
		return errors.New("httpfence: Serial needs Marks: without them a request that was overtaken before its turn came would get in")
	case c.Guarded != nil && (c.Election != "" || c.Resource != ""):
		return errors.New("httpfence: Guarded takes the place of Election and Resource: set it, or them")
	case c.Guarded != nil:
		return nil
	}
	if err := c.Election.Validate(); err != nil {
		return fmt.Errorf("httpfence: Election: %w", err)
	}
	return nil
}

// Gate stands in front of a handler and lets in no former leader's requests. All methods may be called at the same time.
type Gate struct {
	config Config
	turns  turns
}

// New returns a gate. An error says what is wrong with the Config.
func New(c Config) (*Gate, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Guarded == nil {
		resource, election := cmp.Or(c.Resource, string(c.Election)), c.Election
		c.Guarded = func(*http.Request) (string, leadership.Election) { return resource, election }
	}
	if c.Refused == nil {
		c.Refused = func(*http.Request, error) {}
	}
	return &Gate{config: c}, nil
}

// Wrap returns a handler that answers what the package says, or lets next answer. Put it around what changes something, whatever the method; what
// only reads needs no leader. Several handlers of one Gate share its turns.
func (g *Gate) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.handle(w, r, next); err != nil {
			g.config.Refused(r, err)
			answer(w, err)
		}
	})
}

// handle lets the request in. An error means that it did not get in, and that nothing was answered.
func (g *Gate) handle(w http.ResponseWriter, r *http.Request, next http.Handler) error {
	mark, err := Parse(r.Header)
	if err != nil {
		return err
	}
	resource, err := g.resource(r, mark)
	if err != nil {
		return err
	}
	ctx, leave, err := g.enter(r.Context(), resource, mark)
	if err != nil {
		return err
	}
	defer leave()
	next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, markKey{}, mark)))
	return nil
}

// maxResource is how many bytes a resource's name may have: whoever chooses it must not choose how much is kept of it.
const maxResource = 1024

// resource is what the request is about, if the mark is of the election that guards it.
func (g *Gate) resource(r *http.Request, mark fence.Mark) (string, error) {
	resource, election := g.config.Guarded(r)
	switch {
	case election == "":
		return "", &leadership.Error{Code: leadership.NotFound, Detail: "there is nothing here that a leader has a say in"}
	case election != mark.Election:
		return "", invalid(ElectionHeader, "election %q guards this, and the request says that its sender leads %q, which has no say here",
			election, mark.Election)
	case len(resource) > maxResource:
		return "", invalid("resource", "what you want to change has a name of %d bytes; a name has at most %d", len(resource), maxResource)
	}
	return resource, nil
}

// enter compares the mark with all that is known. leave must be called once the request is handled.
func (g *Gate) enter(ctx context.Context, resource string, mark fence.Mark) (entered context.Context, leave func(), err error) {
	if err := g.check(ctx, mark); err != nil {
		return nil, nil, err
	}
	leave = func() {}
	if g.config.Serial {
		if ctx, leave, err = g.turns.enter(ctx, resource, mark); err != nil {
			return nil, nil, err
		}
	}
	turn, stays := leave, false
	defer func() {
		if !stays { // also if somebody else's code panics
			turn()
		}
	}()
	if g.config.Serial {
		err = g.check(ctx, mark) // the wait may have been long
	}
	if err == nil && g.config.Marks != nil {
		err = g.config.Marks.Raise(ctx, resource, mark)
	}
	if err != nil {
		return nil, nil, err
	}
	stays = true
	return ctx, leave, nil
}

func (g *Gate) check(ctx context.Context, mark fence.Mark) error {
	if g.config.Check == nil {
		return nil
	}
	return g.config.Check.Check(ctx, mark)
}

type markKey struct{}

// FromContext returns the mark of the leader whose request a Gate has let in, for a write that compares it once more. It is not ok in a
// context that came through no Gate.
func FromContext(ctx context.Context) (mark fence.Mark, ok bool) {
	mark, ok = ctx.Value(markKey{}).(fence.Mark)
	return mark, ok
}
