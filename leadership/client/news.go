package client

import (
	"errors"
	"fmt"
	"strings"

	"regent/leadership"
	"regent/leadership/wire"
)

// hear takes what a stream says. The error ends the connection.
func (w *watcher) hear(m message) error {
	switch m.name {
	case wire.StreamSnapshot:
		return w.hearSnapshot(m)
	case wire.StreamReady:
		return w.hearReady(m)
	case wire.StreamEnd:
		return w.hearEnd(m)
	case "":
		return w.hearEvent(m)
	}
	return nil // something of a later version
}

// garbled is the error of a stream that says what no server of Regent says, or what nobody has asked for.
func garbled(m message, err error) error {
	return fmt.Errorf("client: watch: %w: the stream has a message %q that cannot be: %w", leadership.StoreUnavailable, m.name, err)
}

// hearSnapshot hears how an election is. Of all elections it is told only once all are known: of those that are deleted before, and the
// connection with them, no other stream would say a word.
func (w *watcher) hearSnapshot(m message) error {
	var document wire.Lease
	if err := wire.Unmarshal(m.data, &document); err != nil {
		return garbled(m, err)
	}
	lease, err := document.Leadership()
	if err == nil {
		err = w.matchElection(lease.Election)
	}
	switch {
	case err != nil:
		return garbled(m, err)
	case w.request.Election == "":
		w.waiting = append(w.waiting, lease)
		return nil
	}
	if err := matchID(m.id, lease.Revision); err != nil {
		return garbled(m, err)
	}
	return w.tellLease(lease, m.id)
}

// tellLease tells how an election is, if that is news.
func (w *watcher) tellLease(l leadership.Lease, cursor string) error {
	if known, ok := w.seen[l.Election]; ok && l.Revision <= known {
		return nil
	}
	w.seen[l.Election], w.cursor = l.Revision, cursor
	return w.tell(News{Lease: &l, Cursor: cursor})
}

// hearReady hears that of all elections each was told of.
func (w *watcher) hearReady(m message) error {
	if w.request.Election != "" {
		return nil
	}
	var start wire.StreamStart
	if err := wire.Unmarshal(m.data, &start); err != nil {
		return garbled(m, err)
	}
	if !validCursor(m.id) || start.Elections != len(w.waiting) {
		err := fmt.Errorf("after %d elections it says that there are %d, and has the id %s", len(w.waiting), start.Elections, wire.Quote(m.id))
		return garbled(m, err)
	}
	leases := w.waiting
	w.waiting = nil
	for _, l := range leases {
		if err := w.tellLease(l, ""); err != nil {
			return err
		}
	}
	w.cursor = m.id
	return w.tell(News{Ready: true, Cursor: m.id})
}

// hearEvent hears what happened. What is no news moves the cursor of all elections on, and would move that of one back.
func (w *watcher) hearEvent(m message) error {
	var document wire.Event
	if err := wire.Unmarshal(m.data, &document); err != nil {
		return garbled(m, err)
	}
	e := document.Leadership()
	if err := w.matchEvent(m, e); err != nil {
		return garbled(m, err)
	}
	known, ok := w.seen[e.Election]
	if ok && e.Revision > known+1 {
		return w.miss(leadership.EventID{Election: e.Election, Revision: known + 1})
	}
	stale := ok && e.Revision <= known
	if all := w.request.Election == ""; all || !stale {
		w.cursor = m.id
	}
	if stale {
		return nil
	}
	w.seen[e.Election] = e.Revision
	return w.tell(News{Event: &e, Cursor: m.id})
}

// miss ends a stream that has left an event out. If another one leaves it out again, it cannot be told.
func (w *watcher) miss(id leadership.EventID) error {
	detail := fmt.Sprintf("the stream left out revision %d of election %q", id.Revision, id.Election)
	if w.missing == id {
		return lasting{compacted(detail)}
	}
	w.missing = id
	return fmt.Errorf("client: watch: %w: %s", leadership.StoreUnavailable, detail)
}

func compacted(detail string) error {
	return &leadership.Error{Code: leadership.HistoryCompacted, Detail: detail + "; begin without a cursor, with how things are"}
}

// ended is the error of a stream that the server has ended.
type ended struct{ reason wire.StopReason }

func (e ended) Error() string {
	return "client: watch: the server ended the stream: " + string(e.reason)
}

// planned says whether a stream has ended for no fault of anybody.
func planned(err error) bool {
	var end ended
	return errors.As(err, &end) && (end.reason == wire.StopLimit || end.reason == wire.StopDraining)
}

// hearEnd hears why the server ends the stream, and from where another one goes on.
func (w *watcher) hearEnd(m message) error {
	var stop wire.StreamStop
	if err := wire.Unmarshal(m.data, &stop); err != nil {
		return garbled(m, err)
	}
	switch begun := w.cursor != ""; {
	case w.request.Election == "" && begun && validCursor(m.id): // it goes on even while those that are watched are quiet
		w.cursor = m.id
	case w.request.Election != "" && !begun && m.id == "0": // it was never seen so far
		w.cursor, w.seen[w.request.Election] = m.id, 0
	}
	if stop.Reason == wire.StopCompacted {
		return lasting{compacted("so much has happened that not all of it can be told")}
	}
	return ended{stop.Reason}
}

// matchElection returns why the election is none that is watched.
func (w *watcher) matchElection(e leadership.Election) error {
	one := w.request.Election
	if one == "" && e.Validate() == nil && strings.HasPrefix(string(e), w.request.Prefix) || one != "" && e == one {
		return nil
	}
	return fmt.Errorf("it is about election %s, which is not watched", wire.Quote(string(e)))
}

// matchEvent returns what is wrong with an event.
func (w *watcher) matchEvent(m message, e leadership.Event) error {
	if err := w.matchElection(e.Election); err != nil {
		return err
	}
	switch {
	case e.Revision < 1 || e.Type == "":
		return errors.New("it has no revision, or no type")
	case w.request.Election != "":
		return matchID(m.id, e.Revision)
	case w.cursor == "":
		return errors.New("it comes before all was said of how things are")
	case !validCursor(m.id):
		return fmt.Errorf("its id is %s", wire.Quote(m.id))
	}
	return nil
}

// matchID returns why the id is not the revision's.
func matchID(id string, r leadership.Revision) error {
	if of, err := wire.ParseLastEventID(id); err != nil || of != r {
		return fmt.Errorf("it is at revision %d, and its id is %s", r, wire.Quote(id))
	}
	return nil
}
