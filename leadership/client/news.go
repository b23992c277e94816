package client

import (
	"errors"
	"fmt"

	"regent/leadership"
	"regent/leadership/wire"
)

// receive handles a message of the stream. An error ends the connection.
func (w *watcher) receive(m message) error {
	switch m.name {
	case wire.StreamSnapshot:
		return w.receiveSnapshot(m)
	case wire.StreamReady:
		return w.receiveReady(m)
	case wire.StreamMember:
		return w.receiveMember(m)
	case wire.StreamEnd:
		return w.receiveEnd(m)
	case "":
		return w.receiveEvent(m)
	}
	return nil // from a later version
}

// receiveMember handles a member that has come or gone.
func (w *watcher) receiveMember(m message) error {
	if !w.request.Members {
		return nil
	}
	var change leadership.MemberChange
	err := wire.Unmarshal(m.data, &change)
	if err == nil {
		err = change.ID.Validate()
	}
	if err == nil && change.Change == "" {
		err = errors.New("it does not say what has changed")
	}
	if err != nil {
		return badMessage(m, err)
	}
	return w.emit(News{Member: &change, Cursor: w.cursor})
}

// badMessage returns the error of a message that no Regent server sends or that was not asked for.
func badMessage(m message, err error) error {
	return fmt.Errorf("client: watch: %w: invalid message %q in the stream: %w", leadership.StoreUnavailable, m.name, err)
}

// receiveSnapshot handles the state of an election. When all elections are watched, the states are
// held back until all have arrived: if the connection broke before, a deletion in between would not
// be reported by the next one.
func (w *watcher) receiveSnapshot(m message) error {
	var document wire.Lease
	if err := wire.Unmarshal(m.data, &document); err != nil {
		return badMessage(m, err)
	}
	lease, err := document.Leadership()
	if err == nil {
		err = w.matchElection(lease.Election)
	}
	switch {
	case err != nil:
		return badMessage(m, err)
	case w.request.Election == "":
		w.snapshots = append(w.snapshots, lease)
		return nil
	}
	if err := matchID(m.id, lease.Revision); err != nil {
		return badMessage(m, err)
	}
	return w.emitLease(lease, m.id)
}

// emitLease reports the state of an election if it is new.
func (w *watcher) emitLease(l leadership.Lease, cursor string) error {
	if known, ok := w.seen[l.Election]; ok && l.Revision <= known {
		return nil
	}
	w.seen[l.Election], w.cursor = l.Revision, cursor
	return w.emit(News{Lease: &l, Cursor: cursor})
}

// receiveReady handles the end of the initial states of all elections.
func (w *watcher) receiveReady(m message) error {
	if w.request.Election != "" {
		return nil
	}
	var start wire.StreamStart
	if err := wire.Unmarshal(m.data, &start); err != nil {
		return badMessage(m, err)
	}
	if !validCursor(m.id) || start.Elections != len(w.snapshots) {
		err := fmt.Errorf("it says that there are %[2]d elections after %[1]d were sent, or has an invalid id: %[3]s", len(w.snapshots), start.Elections, wire.Quote(m.id))
		return badMessage(m, err)
	}
	leases := w.snapshots
	w.snapshots = nil
	for _, l := range leases {
		if err := w.emitLease(l, ""); err != nil {
			return err
		}
	}
	w.cursor = m.id
	return w.emit(News{Ready: true, Cursor: m.id})
}

// receiveEvent handles an event. A known event moves the cursor of all elections on; it would move
// the cursor of one election back.
func (w *watcher) receiveEvent(m message) error {
	var document wire.Event
	if err := wire.Unmarshal(m.data, &document); err != nil {
		return badMessage(m, err)
	}
	e := document.Leadership()
	if err := w.matchEvent(m, e); err != nil {
		return badMessage(m, err)
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
	return w.emit(News{Event: &e, Cursor: m.id})
}

// miss ends a stream that has left out an event. If the next stream leaves it out again, it is lost
// for good.
func (w *watcher) miss(id leadership.EventID) error {
	detail := fmt.Sprintf("the stream left out revision %d of election %q", id.Revision, id.Election)
	if w.missing == id {
		return permanentError{compacted(detail)}
	}
	w.missing = id
	return fmt.Errorf("client: watch: %w: %s", leadership.StoreUnavailable, detail)
}

func compacted(detail string) error {
	return &leadership.Error{Code: leadership.HistoryCompacted, Detail: detail + "; watch again without a cursor to begin with the present state"}
}

// streamEnded is the error of a stream that the server has ended.
type streamEnded struct{ reason wire.StopReason }

func (e streamEnded) Error() string {
	return "client: watch: the server ended the stream: " + string(e.reason)
}

// planned reports whether the server ended the stream as part of normal operation.
func planned(err error) bool {
	end, ok := errors.AsType[streamEnded](err)
	return ok && (end.reason == wire.StopLimit || end.reason == wire.StopDraining)
}

// receiveEnd handles the end of a stream: its reason, and where to resume.
func (w *watcher) receiveEnd(m message) error {
	var stop wire.StreamStop
	if err := wire.Unmarshal(m.data, &stop); err != nil {
		return badMessage(m, err)
	}
	switch begun := w.cursor != ""; {
	// it moves on even while the watched elections are quiet
	case w.request.Election == "" && begun && validCursor(m.id):
		w.cursor = m.id
	case w.request.Election != "" && !begun && m.id == "0": // the election does not exist yet
		w.cursor, w.seen[w.request.Election] = m.id, 0
	}
	if stop.Reason == wire.StopCompacted {
		return permanentError{compacted("the stream fell too far behind")}
	}
	return streamEnded{stop.Reason}
}

func (w *watcher) matchElection(e leadership.Election) error {
	one := w.request.Election
	if one == "" && e.Validate() == nil && w.which().Has(e) || one != "" && e == one {
		return nil
	}
	return fmt.Errorf("it is about election %s, which is not watched", wire.Quote(string(e)))
}

func (w *watcher) matchEvent(m message, e leadership.Event) error {
	if err := w.matchElection(e.Election); err != nil {
		return err
	}
	switch {
	case e.Revision < 1 || e.Type == "":
		return errors.New("it has no revision or no type")
	case w.request.Election != "":
		return matchID(m.id, e.Revision)
	case w.cursor == "":
		return errors.New("it comes before the initial state is complete")
	case !validCursor(m.id):
		return fmt.Errorf("it has the invalid id %s", wire.Quote(m.id))
	}
	return nil
}

func matchID(id string, r leadership.Revision) error {
	if of, err := wire.ParseLastEventID(id); err != nil || of != r {
		return fmt.Errorf("it is at revision %d, but its id is %s", r, wire.Quote(id))
	}
	return nil
}
