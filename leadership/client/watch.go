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
	Prefix   string              // with all: only names that begin with it
	// Of is for an election with seats: with all, only that election and its seats. See
	// leadership.Selection.
	Of leadership.Election
	// After is the Cursor of the last News that was seen: the watch continues after it. For one
	// election it is a revision, and "0" is before the first. "" begins with the present state.
	After string
	// Member, if not empty, counts as a follower of the one watched election while the watch is
	// connected: it follows the token of the last event that it was sent. Client.Member needs no
	// open connection.
	Member leadership.CandidateID
	// Members asks for News of members of the one election that is watched.
	Members bool
	// Connection, if set, is called with nil when the watch is connected, and with an error each
	// time the connection was lost or could not be made, before the next try. It is not an error if
	// the server ends a stream because of its age or because it shuts down. Connection is called
	// between two News, on the same goroutine.
	Connection func(error)
}

// News is one item of a Watch: one of Lease, Event, Member and Ready.
type News struct {
	// Lease is the state of an election when the watch begins. A deleted election is reported only
	// if it alone is watched.
	Lease *leadership.Lease
	// Event is what has happened.
	Event *leadership.Event
	// Member is a change of a member. Changes while the watch is not connected are not reported:
	// call Members whenever WatchRequest.Connection is called with nil.
	Member *leadership.MemberChange
	// Ready reports that the state of every election has been yielded: there are no others.
	Ready bool
	// Cursor is the WatchRequest.After that continues after this item. It is "" for each Lease
	// before Ready: a watch that stopped there begins anew.
	Cursor string
}

// Watch yields the present state and then each event as it happens: the events of one election
// once, in order and without a gap. It reconnects and resumes when the connection breaks or falls
// silent, when the server ends the stream, and after transient errors such as StoreUnavailable or
// RateLimited, also at the start; Connection is told of it. Each range over it is a new watch. It
// reads no faster than the loop.
//
// An election that does not exist can be watched; it yields nothing until it exists. If the
// connection broke meanwhile, the first item may be its state instead of the events that led to it.
// A resumed watch of all elections may repeat events: ignore those that are not newer than what you
// have seen of an election.
//
// Unless the caller leaves the loop, the last iteration has an error and no News: ctx's, or a
// permanent one, such as InvalidArgument, PermissionDenied, RevisionMismatch (the election has not
// reached the revision After: the store was restored, or is another one) and HistoryCompacted (the
// events after After, or after the last item, are no longer available). After the last two the
// caller has missed events. A watch without After begins anew with the present state.
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

type watcher struct {
	client  *Client
	request WatchRequest
	yield   func(News, error) bool
	backoff backoff

	cursor    string
	seen      map[leadership.Election]leadership.Revision // last reported revision of each election
	snapshots []leadership.Lease                          // states that the present stream has sent before ready
	missing   leadership.EventID                          // the event that the last stream left out
}

// run connects and listens until a permanent error. It never returns nil.
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
		last, permanent := errors.AsType[permanentError](err)
		switch {
		case errors.Is(err, errLeft):
			return err
		case ctx.Err() != nil:
			continue
		case permanent:
			return last.error
		case time.Since(began) > maxPause:
			w.backoff = backoff{}
		}
		if !planned(err) {
			w.connection(err)
		}
		sleep(ctx, w.backoff.after(err))
	}
}

// begin validates the request, whose cursor is sent in a header.
func (w *watcher) begin() error {
	r := w.request
	if r.Election == "" && (r.Member != "" || r.Members) {
		return invalid("member", "members are those of one election; name it, or leave Member and Members out")
	}
	if r.Member != "" && r.Member.Validate() != nil {
		return invalid("member", "%v", r.Member.Validate())
	}
	if r.Election == "" {
		if err := w.which().Validate(); r.Of != "" && err != nil {
			return err
		}
		if r.After != "" && !validCursor(r.After) {
			return invalid("after", "after must be the cursor of the last item, not %s; omit it to begin with the present state", wire.Quote(r.After))
		}
		return nil
	}
	if err := r.Election.Validate(); err != nil {
		return invalid("election", "%v", err)
	}
	if r.Prefix != "" || r.Of != "" {
		return invalid("prefix", "a prefix, and Of, are only for a watch of all elections, not of %q", r.Election)
	}
	if r.After == "" {
		return nil
	}
	revision, err := wire.ParseLastEventID(r.After)
	if err != nil {
		return invalid("after", "after must be the last revision, not %s; omit it to begin with the present state", wire.Quote(r.After))
	}
	w.seen[r.Election] = revision
	return nil
}

func invalid(field, format string, args ...any) error {
	return &leadership.Error{Code: leadership.InvalidArgument, Field: field, Detail: fmt.Sprintf(format, args...)}
}

// maxCursor is the longest cursor, in characters.
const maxCursor = 64

// validCursor reports whether the text can be a cursor and a header: printable ASCII without
// spaces.
func validCursor(text string) bool {
	printable := !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
	return text != "" && len(text) <= maxCursor && printable
}

// listen connects and handles messages until the connection ends. It never returns nil.
func (w *watcher) listen(ctx context.Context) error {
	s, err := w.client.open(ctx, w.call())
	if err != nil {
		return err
	}
	defer s.close()
	w.connection(nil)
	w.snapshots = nil
	for {
		m, err := s.next()
		if err != nil {
			return err
		}
		if err := w.receive(m); err != nil {
			return err
		}
	}
}

// call returns the request for a stream after the cursor. Compression is off: it could hold events
// back.
func (w *watcher) call() call {
	k := call{name: "watch", method: http.MethodGet, path: wire.PathEvents, query: url.Values{}}
	setText(k.query, "prefix", w.request.Prefix)
	setText(k.query, "of", string(w.request.Of))
	setText(k.query, "member", string(w.request.Member))
	if e := w.request.Election; e != "" {
		k.path = wire.Path(e, wire.Events)
	}
	k.header = map[string]string{"Accept": wire.StreamType, "Accept-Encoding": "identity", wire.LastEventIDHeader: w.cursor}
	return k
}

// which returns the watched elections, if more than one is watched.
func (w *watcher) which() leadership.Selection {
	return leadership.Selection{Prefix: w.request.Prefix, Of: w.request.Of}
}

func (w *watcher) connection(err error) {
	if w.request.Connection != nil {
		w.request.Connection(err)
	}
}

func (w *watcher) emit(n News) error {
	w.backoff = backoff{}
	if !w.yield(n, nil) {
		return errLeft
	}
	return nil
}
