package httpfence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"regent/leadership"
	"regent/leadership/fence"
)

// Checker checks whether a mark's token is the current leader's. *Checks implements it.
type Checker interface {
	// Check returns nil if it is, an error with the code TokenStale if it is not, and one with the
	// code ReadOnly or NotReady if it is and must not write now. Any other error means that it
	// could not find out.
	Check(ctx context.Context, w fence.Mark) error
}

// Config configures a Gate. Required are Election or Guarded, and Check or Marks.
type Config struct {
	// Election guards what the handler changes. Tokens of other elections are refused.
	Election leadership.Election
	// Resource is the name, for the Marks, of what the handler changes; "" for the election's name.
	Resource string
	// Guarded replaces both where they depend on the request. It must not take the election from
	// the request unchecked, or every leader is admitted everywhere. It returns "" for a request
	// that no election guards; that is answered with 404.
	Guarded func(*http.Request) (resource string, election leadership.Election)

	// Check is asked first.
	Check Checker
	// Marks are raised next. A request that they cannot compare is refused.
	Marks Marks

	// ReadsPass lets requests with the methods GET and HEAD pass without headers and without a
	// check, so that reads go on whichever process leads, and cost no call to Regent. It is for
	// handlers whose GET and HEAD change nothing, and that take no other method from a query. A
	// request that asks for another protocol (Upgrade), as a WebSocket does, is checked; so is one
	// that asks for another method by a header (X-HTTP-Method-Override, X-HTTP-Method,
	// X-Method-Override).
	ReadsPass bool

	// Refused, if set, is called for each request that was refused, with the error and the causes
	// that the reply hides, for logs and metrics. It may be called concurrently.
	Refused func(*http.Request, error)
}

func (c Config) validate() error {
	switch {
	case c.Check == nil && c.Marks == nil:
		return errors.New("httpfence: set Check, Marks or both: without them there is nothing to compare tokens with")
	case c.Guarded != nil && (c.Election != "" || c.Resource != ""):
		return errors.New("httpfence: set either Guarded, or Election and Resource")
	case c.Guarded != nil:
		return nil
	}
	if err := c.Election.Validate(); err != nil {
		return fmt.Errorf("httpfence: Election: %w", err)
	}
	return nil
}

// Gate protects handlers from requests of former leaders. Its methods may be called concurrently.
type Gate struct{ config Config }

// New returns a gate. It returns an error if the Config is invalid.
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

// Wrap returns a handler that refuses a request as the package describes, or lets next answer it.
// Wrap handlers that change something, whatever the method; reads need no leader, and with
// ReadsPass are not checked.
func (g *Gate) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.handle(w, r, next); err != nil {
			g.config.Refused(r, err)
			answer(w, err)
		}
	})
}

// handle admits the request and calls next. An error means that it was not admitted, and that
// nothing was answered.
func (g *Gate) handle(w http.ResponseWriter, r *http.Request, next http.Handler) error {
	if g.config.ReadsPass && reads(r) {
		next.ServeHTTP(w, r)
		return nil
	}
	mark, err := Parse(r.Header)
	if err != nil {
		return err
	}
	resource, err := g.resource(r, mark)
	if err != nil {
		return err
	}
	if err := g.admit(r.Context(), resource, mark); err != nil {
		return err
	}
	next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), markKey{}, mark)))
	return nil
}

// reads reports whether the request changes nothing, by its method (RFC 9110 §9.2.1), which no
// header replaces.
func reads(r *http.Request) bool {
	replaced := func(header string) bool { return len(r.Header.Values(header)) > 0 }
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		!slices.ContainsFunc([]string{"Upgrade", "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"}, replaced)
}

// maxResource is the longest name of a resource in bytes: the sender must not choose how much
// memory it takes.
const maxResource = 1024

// resource returns what the request is about, if the mark's election guards it.
func (g *Gate) resource(r *http.Request, mark fence.Mark) (string, error) {
	resource, election := g.config.Guarded(r)
	switch {
	case election == "":
		return "", &leadership.Error{Code: leadership.NotFound, Detail: "no election guards this"}
	case election != mark.Election:
		return "", invalid(ElectionHeader, "election %q guards this, but the request's sender leads election %q",
			election, mark.Election)
	case len(resource) > maxResource:
		return "", invalid("resource", "the resource's name has %d bytes; the limit is %d", len(resource), maxResource)
	}
	return resource, nil
}

// admit compares the mark with everything that is known.
func (g *Gate) admit(ctx context.Context, resource string, mark fence.Mark) error {
	if g.config.Check != nil {
		if err := g.config.Check.Check(ctx, mark); err != nil {
			return err
		}
	}
	if g.config.Marks != nil {
		return g.config.Marks.Raise(ctx, resource, mark)
	}
	return nil
}

type markKey struct{}

// FromContext returns the mark of the leader whose request a Gate has admitted, for a write that
// compares it once more. ok is false for a context that did not come through a Gate.
func FromContext(ctx context.Context) (mark fence.Mark, ok bool) {
	mark, ok = ctx.Value(markKey{}).(fence.Mark)
	return mark, ok
}
