package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// WatchRequest says what to watch, and from where.
type WatchRequest struct {
	Election leadership.Election // "" for all
	Prefix   string              // of all: what their names begin with
	// After is the Cursor of the last News that was seen: what came after it is told. Of one election that is a revision, and "0" stands before
	// all. "" begins with how things are.
	After string
	// Connection, if there is one, is told how the watch fares: nil once it is connected, and an error each time that the connection was lost or
	// could not be made, before another is tried. A server that ends a stream only because it has lasted long enough, or because it shuts
	// down, is no error. It is called between two News, and by the same goroutine.
	Connection func(error)
}

// News is what a Watch tells: one of Lease, Event and Ready.
type News struct {
	// Lease is an election as it is when the watch begins. One that is deleted is told of if it alone is watched.
	Lease *leadership.Lease
	// Event is what has happened.
	Event *leadership.Event
	// Ready says, of all elections, that each has been told of: the others are not there.
	Ready bool
	// Cursor is the WatchRequest.After of a watch that goes on after this. "" comes with each Lease before Ready: a watch that was left there
	// begins anew.
	Cursor string
}

// Watch tells how things are, and then each event, as it happens: those of one election once, in order and without a gap. It tries again by
// itself and goes on from where it was when the connection breaks or falls silent, when the server ends the stream, and when it answers
// with what passes, such as StoreUnavailable or RateLimited, also at first: Connection is told of it. Each range over it is a watch of its
// own. It reads no faster than the loop does.
//
// An election that was never seen can be watched, and tells nothing until it is; if the connection broke meanwhile, the first thing told may be
// how it is, instead of how it came to be so. Whoever resumes a watch of all elections may be told some events again: drop what is not
// newer than what you have seen of an election.
//
// Unless the caller leaves the loop, its last round has an error and no News: ctx's, or what does not mend itself, such as InvalidArgument,
// PermissionDenied, RevisionMismatch (the election has not come to the revision After: the store was restored, or is another one) and
// HistoryCompacted (what follows on After, or on what was told so far, cannot be told any more). After the last two the caller has
// missed something. A watch without After begins anew with how things are.
func (c *Client) Watch(ctx context.Context, r WatchRequest) iter.Seq2[News, error] {
	return func(yield func(News, error) bool) {
		w := &watcher{client: c, request: r, yield: yield, cursor: r.After, seen: map[leadership.Election]leadership.Revision{}}
		if err := w.run(ctx); !errors.Is(err, errLeft) {
			yield(News{}, err)
		}
	}
}

// errLeft says that the caller has left the loop.
var errLeft = errors.New("the caller has left")

// watcher is a Watch at work.
type watcher struct {
	client  *Client
	request WatchRequest
	yield   func(News, error) bool
	pace    pace

	cursor  string
	seen    map[leadership.Election]leadership.Revision // what was told; an entry for each election
	waiting []leadership.Lease                          // what a stream has said so far of how things are
	missing leadership.EventID                          // what the last stream left out
}

// run connects and listens until something lasting happens. It never returns nil.
func (w *watcher) run(ctx context.Context) error {
	if err := w.begin(); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("client: watch: %w", err)
		}
		began := time.Now()
		err := w.listen(ctx)
		var last lasting
		switch {
		case errors.Is(err, errLeft):
			return err
		case ctx.Err() != nil:
			continue
		case errors.As(err, &last):
			return last.error
		case time.Since(began) > maxPause:
			w.pace = pace{}
		}
		if !planned(err) {
			w.connection(err)
		}
		sleep(ctx, w.pace.after(err))
	}
}

// begin checks the request, whose cursor travels in a header.
func (w *watcher) begin() error {
	r := w.request
	if r.Election == "" {
		if r.After != "" && !validCursor(r.After) {
			return invalid("after", "after is the cursor of what was seen last, not %s; leave it out to begin with how things are", wire.Quote(r.After))
		}
		return nil
	}
	if err := r.Election.Validate(); err != nil {
		return invalid("election", "%v", err)
	}
	if r.Prefix != "" {
		return invalid("prefix", "a prefix is for a watch of all elections, and this one is of %q", r.Election)
	}
	if r.After == "" {
		return nil
	}
	revision, err := wire.ParseLastEventID(r.After)
	if err != nil {
		return invalid("after", "after is the revision that was seen last, not %s; leave it out to begin with how things are", wire.Quote(r.After))
	}
	w.seen[r.Election] = revision
	return nil
}

func invalid(field, format string, args ...any) error {
	return &leadership.Error{Code: leadership.InvalidArgument, Field: field, Detail: fmt.Sprintf(format, args...)}
}

// maxCursor is how many characters a cursor may have.
const maxCursor = 64

// validCursor says whether the text can be a cursor, and a header: printable ASCII without spaces.
func validCursor(text string) bool {
	printable := !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
	return text != "" && len(text) <= maxCursor && printable
}

// listen connects, and tells what comes until the connection ends. It never returns nil.
func (w *watcher) listen(ctx context.Context) error {
	s, err := w.client.open(ctx, w.call())
	if err != nil {
		return err
	}
	defer s.close()
	w.connection(nil)
	w.waiting = nil
	for {
		m, err := s.next()
		if err != nil {
			return err
		}
		if err := w.hear(m); err != nil {
			return err
		}
	}
}

// call asks for a stream of what comes after the cursor. One that is compressed could be held back.
func (w *watcher) call() call {
	k := call{name: "watch", method: http.MethodGet, path: wire.PathEvents, query: url.Values{}}
	setText(k.query, "prefix", w.request.Prefix)
	if e := w.request.Election; e != "" {
		k.path = wire.Path(e, wire.Events)
	}
	k.header = map[string]string{"Accept": wire.StreamType, "Accept-Encoding": "identity", wire.LastEventIDHeader: w.cursor}
	return k
}

func (w *watcher) connection(err error) {
	if w.request.Connection != nil {
		w.request.Connection(err)
	}
}

// tell tells the caller.
func (w *watcher) tell(n News) error {
	w.pace = pace{}
	if !w.yield(n, nil) {
		return errLeft
	}
	return nil
}
