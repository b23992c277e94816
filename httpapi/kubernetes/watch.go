package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

type watching struct {
	door *Door
	selection
	r         *http.Request
	w         http.ResponseWriter
	table     string // the version of Tables to send; "" for Leases
	bookmarks bool
	sent      map[leadership.Election]leadership.Revision // the last sent revision of each Lease, unless it was deleted
	last      time.Time                                   // the latest sent version
}

// stall is how long a write to a client that does not read may block.
const stall = 10 * time.Second

// watch serves a watch: first the present Leases, if the client has no version, and then all
// changes. It ends after StreamLimit, and the client resumes from the last version.
func (d *Door) watch(w http.ResponseWriter, r *http.Request, s selection) error {
	q := r.URL.Query()
	initial := q.Get("sendInitialEvents")
	if initial != "" && q.Get("resourceVersionMatch") != "NotOlderThan" {
		return invalid("", "resourceVersionMatch", "it must be NotOlderThan with sendInitialEvents")
	}
	if initial == "" && q.Has("resourceVersionMatch") {
		return invalid("", "resourceVersionMatch", "it is forbidden for a watch without sendInitialEvents")
	}
	limit := d.config.StreamLimit
	if seconds, err := strconv.Atoi(q.Get("timeoutSeconds")); err == nil && seconds > 0 {
		limit = min(limit, time.Duration(min(seconds, 1<<20))*time.Second)
	}
	known := q.Get("resourceVersion")
	all := initial == "true" || initial == "" && (known == "" || known == "0") // begin with the present state
	var after instance.Cursor
	if !all && known != "" && known != "0" {
		var err error
		if after, err = cursorOf(known); err != nil {
			return err
		}
	}
	opening, cancel := d.patience(w, r)
	defer cancel()
	from, err := d.source(opening, s, after)
	if err != nil {
		return expired(err)
	}
	defer from.close()
	var rows []row
	_, one := s.one()
	if all || one {
		if rows, err = d.list(opening, s); err != nil {
			return err
		}
	}
	var gone time.Time // when the only Lease was deleted, if it was
	if one && !all && len(rows) == 0 && from.first.Revision > 0 {
		if gone, err = d.changed(opening, from.first); err != nil {
			return err
		}
	}
	t := &watching{door: d, selection: s, r: r, w: w, bookmarks: q.Get("allowWatchBookmarks") == "true", sent: map[leadership.Election]leadership.Revision{}}
	t.table, _ = asTable(r)
	ctx, end := context.WithTimeout(r.Context(), limit)
	defer end()
	t.begin()
	seen, _ := strconv.ParseInt(known, 10, 64)
	news := func(at time.Time, vacant bool) bool {
		n := at.UnixMicro()
		// The recorded end of a lease may be earlier than its last heartbeat, because of different
		// clocks.
		return all || !(initial == "false" && known == "") && (n > seen || vacant && n != seen)
	}
	for _, one := range rows {
		at := written(one.election)
		if news(at, one.election.State == leadership.Vacant) && t.send("ADDED", one, at) != nil {
			return nil
		}
	}
	if !gone.IsZero() && news(gone, false) {
		k, _ := s.one()
		if t.send("DELETED", row{newLease(k, from.first, version(gone)), from.first}, gone) != nil {
			return nil
		}
	}
	if initial == "true" && t.bookmarks && t.bookmark(from, map[string]string{initialEventsEnd: "true"}) != nil {
		return nil
	}
	t.run(ctx, from)
	return nil
}

// expired returns the error for a version from which a watch cannot resume: too old, or of another
// store. The client must list again.
func expired(err error) error {
	if refused, ok := errors.AsType[*leadership.Error](err); ok && (refused.Code == leadership.HistoryCompacted || refused.Code == leadership.InvalidArgument && refused.Field == "after") {
		return refuse(http.StatusGone, "", "too old resource version, or one of another store: %s", refused.Detail)
	}
	return err
}

// begin begins the reply. After it an error cannot be answered any more.
func (t *watching) begin() {
	connection := http.NewResponseController(t.w)
	connection.SetReadDeadline(time.Time{}) // an error means that the connection has no deadlines
	t.w.Header().Set("Content-Type", typeJSON)
	t.w.Header().Set("X-Accel-Buffering", "no") // tells nginx not to buffer
	t.w.WriteHeader(http.StatusOK)
	connection.SetWriteDeadline(time.Now().Add(stall))
	connection.Flush()
}

// run sends changes until there is a reason to stop.
func (t *watching) run(ctx context.Context, from *source) {
	for ctx.Err() == nil {
		waiting, cancel := context.WithTimeout(ctx, t.door.config.BookmarkEvery)
		changes, err := from.next(waiting)
		silent := waiting.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && silent:
			err = nil
			if t.bookmarks && from.feed != nil {
				err = t.bookmark(from, nil)
			}
		case errors.Is(err, instance.ErrSlow), errors.Is(err, leadership.HistoryCompacted):
			t.write("ERROR", refuse(http.StatusGone, "", "the watch was read too slowly, or too much has happened at once; read everything anew").document())
			return
		case err != nil:
			return // the client reconnects, to another instance or once the store is back
		default:
			err = t.pass(ctx, changes)
		}
		if err != nil {
			return
		}
	}
}

// pass sends the present state of changed elections, which may be newer than the change.
func (t *watching) pass(ctx context.Context, changes []change) error {
	for _, c := range changes {
		k, ok := keyOf(c.election)
		if !ok || !t.has(k) || c.revision <= t.sent[c.election] {
			continue
		}
		reading, err := t.read(ctx, c)
		gone := errors.Is(err, leadership.NotFound)
		if err != nil && !gone {
			return err
		}
		l := reading.Lease
		if gone {
			l = leadership.Lease{Election: c.election}
			if refused, ok := errors.AsType[*leadership.Error](err); ok && refused.Lease != nil {
				l = *refused.Lease
			}
		}
		l.Revision = max(l.Revision, c.revision)
		at := written(l)
		if gone {
			at = c.at
		}
		at = c.version(at)
		one := row{newLease(k, l, version(at)), l}
		kind := "MODIFIED"
		switch matching := t.matches(one.Metadata.Labels); {
		case gone, !matching:
			kind = "DELETED"
		case c.begun, len(t.labels) > 0: // it may be selected only now
			kind = "ADDED"
		}
		if err := t.send(kind, one, at); err != nil {
			return err
		}
		if kind == "DELETED" && l.Revision == c.revision { // no older change can follow
			delete(t.sent, c.election)
		}
	}
	return nil
}

// read reads a Lease that has changed. If the caller exceeds its rate limit, read waits: if the
// watch ended, the client would begin with even more reads.
func (t *watching) read(ctx context.Context, c change) (leadership.Reading, error) {
	for {
		reading, err := t.door.config.Service.Read(ctx, leadership.ReadRequest{Election: c.election, Known: c.revision})
		refused, ok := errors.AsType[*leadership.Error](err)
		if !ok || refused.Code != wire.RateLimited {
			return reading, err
		}
		select {
		case <-time.After(refused.RetryAfter):
		case <-ctx.Done():
			return leadership.Reading{}, ctx.Err()
		}
	}
}

// send sends an event about a Lease, with its version.
func (t *watching) send(kind string, one row, version time.Time) error {
	t.sent[one.election.Election], t.last = one.election.Revision, later(t.last, version)
	if t.table != "" {
		return t.write(kind, newTable(t.table, one.Metadata.ResourceVersion, t.r, []row{one}))
	}
	return t.write(kind, one.lease)
}

// bookmark sends the version from which to resume, no earlier than that of any Lease sent.
func (t *watching) bookmark(from *source, annotations map[string]string) error {
	m := listMeta{ResourceVersion: version(later(from.seen(), t.last)), Annotations: annotations}
	if t.table != "" {
		return t.write("BOOKMARK", table{Kind: "Table", APIVersion: "meta.k8s.io/" + t.table, Metadata: m, Columns: columns, Rows: []tableRow{}})
	}
	return t.write("BOOKMARK", object{"kind": "Lease", "apiVersion": apiVersion, "metadata": m, "spec": object{}})
}

// write sends an event. An error means that the client has left, or did not read in time.
func (t *watching) write(kind string, v any) error {
	connection := http.NewResponseController(t.w)
	connection.SetWriteDeadline(time.Now().Add(stall))
	if _, err := t.w.Write(text(object{"type": kind, "object": v})); err != nil {
		return err
	}
	err := connection.Flush()
	if t.r.ProtoMajor >= 2 && err == nil {
		connection.SetWriteDeadline(time.Time{}) // HTTP/2 ends a stream at its deadline
	}
	return err
}
