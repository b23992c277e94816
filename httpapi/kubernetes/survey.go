package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"regent/httpapi/access/authn"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// wantsWatch reports whether a request is for a watch.
func wantsWatch(r *http.Request) bool {
	watch, err := strconv.ParseBool(r.URL.Query().Get("watch"))
	return err == nil && watch
}

// survey serves a list or a watch: of one Lease, if the key names it, or of those of its namespace
// or of all.
func (d *Door) survey(w http.ResponseWriter, r *http.Request, k key) error {
	s, err := selects(r, k)
	if err == nil {
		err = checkListing(r)
	}
	if err == nil {
		err = s.validate()
	}
	if err != nil {
		return err
	}
	if wantsWatch(r) {
		return s.denied(r, "watch", d.watch(w, r, s))
	}
	ctx, cancel := d.patience(w, r)
	defer cancel()
	from, err := d.source(ctx, s, instance.Cursor{})
	if err != nil {
		return s.denied(r, "list", err)
	}
	from.close()
	rows, err := d.list(ctx, s)
	if err != nil {
		return err
	}
	seen := latest(from.seen(), rows)
	if version, as := asTable(r); as {
		return d.large(w, r, newTable(version, seen, r, rows))
	}
	items := make([]lease, len(rows))
	for i := range rows {
		items[i] = rows[i].lease
	}
	return d.large(w, r, object{"kind": "LeaseList", "apiVersion": apiVersion, "metadata": listMeta{ResourceVersion: seen}, "items": items})
}

// large answers with a list, if Config.Reply has room for it.
func (d *Door) large(w http.ResponseWriter, r *http.Request, list any) error {
	body := text(list)
	if d.config.Reply != nil {
		done, err := d.config.Reply(r.Context(), int64(len(body)))
		if err != nil {
			return err
		}
		defer done()
	}
	send(w, http.StatusOK, body)
	return nil
}

// patience limits the time to read all Leases for one answer: a minute by default, as for an API
// server of Kubernetes.
func (d *Door) patience(w http.ResponseWriter, r *http.Request) (context.Context, context.CancelFunc) {
	limit := 6 * d.config.Timeout
	// An error means that the connection has no deadlines.
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit + 3*stall))
	return context.WithTimeout(r.Context(), limit)
}

// denied returns the error, in the words of Kubernetes, for a caller that may not read all Leases
// of the selection.
func (s selection) denied(r *http.Request, verb string, err error) error {
	refused, ok := errors.AsType[*leadership.Error](err)
	if _, one := s.one(); one || !ok || refused.Code != wire.PermissionDenied {
		return err
	}
	scope := "at the cluster scope"
	if s.namespace != "" {
		scope = fmt.Sprintf("in the namespace %q", s.namespace)
	}
	who, _ := authn.From(r.Context())
	return forbidden("", "User %q cannot %s resource \"leases\" in API group %q %s; an operator of this service can grant the role observer on the elections %s*", who, verb, group, scope, s.prefix())
}

// checkListing refuses options of a list or a watch that are malformed or not supported. A list
// always has the newest state in one page, whatever its limit.
func checkListing(r *http.Request) error {
	q := r.URL.Query()
	for _, name := range []string{"limit", "timeoutSeconds"} {
		if n, err := strconv.ParseInt(q.Get(name), 10, 64); q.Get(name) != "" && (err != nil || n < 0) {
			return refuse(http.StatusBadRequest, "", "%s is %q, and must be a whole number that is not negative", name, cut(q.Get(name)))
		}
	}
	if wantsWatch(r) {
		return nil
	}
	known, match := q.Get("resourceVersion"), q.Get("resourceVersionMatch")
	switch {
	case q.Get("continue") != "":
		return refuse(http.StatusBadRequest, "", "continue is %q, and this server gives none: a list has all Leases; leave it out", cut(q.Get("continue")))
	case match != "" && match != "NotOlderThan":
		return refuse(http.StatusBadRequest, "", "resourceVersionMatch is %q, and a list is as new as can be; leave it out, or send NotOlderThan", cut(match))
	case match != "" && known == "":
		return refuse(http.StatusBadRequest, "", "resourceVersionMatch needs a resourceVersion")
	case known == "" || known == "0":
		return nil
	}
	if _, err := cursorOf(known); err != nil {
		return refuse(http.StatusBadRequest, "", "resourceVersion: %q is not a version that this server gave", cut(known))
	}
	return nil
}

// list reads all Leases that are selected.
func (d *Door) list(ctx context.Context, s selection) (rows []row, err error) {
	if k, ok := s.one(); ok {
		e, _ := k.election()
		reading, err := d.config.Service.Read(ctx, leadership.ReadRequest{Election: e, Strong: true})
		if errors.Is(err, leadership.NotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return s.add(nil, reading.Lease), nil
	}
	all, err := d.config.Service.All(ctx, s.prefix())
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		rows = s.add(rows, l)
	}
	return rows, nil
}

// add appends an election if it is a selected Lease.
func (s selection) add(rows []row, l leadership.Lease) []row {
	k, ok := keyOf(l.Election)
	if !ok || l.Deleted || !s.has(k) {
		return rows
	}
	one := newLease(k, l, version(written(l)))
	if !s.matches(one.Metadata.Labels) {
		return rows
	}
	return append(rows, row{one, l})
}

// source produces the changes of a watch: from the feed of all elections with a prefix or, for a
// watch of one Lease, from the watch of its election.
type source struct {
	feed  *instance.Feed
	one   *instance.Watch
	first leadership.Lease // for a watch of one: its state when the watch began
}

// lag is how far before the client's version a watch of several Leases resumes. That version may be
// of a change that the instance heard of before an earlier change of another Lease. A feed hears of
// every change within half an hour.
const lag = 35 * time.Minute

// change is an election that has changed.
type change struct {
	election leadership.Election
	revision leadership.Revision
	begun    bool // the election did not exist before
	at       time.Time
	most     time.Time // the latest allowed version; zero for no limit
}

// version returns the version of a Lease that was written at that time, but no later one than most,
// so that a client that resumes from it misses nothing.
func (c change) version(written time.Time) time.Time {
	if !c.most.IsZero() && written.After(c.most) {
		return c.most
	}
	return written
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// latest returns the version of a list: none of its Leases has a later one.
func latest(seen time.Time, rows []row) string {
	for _, one := range rows {
		seen = later(seen, written(one.election))
	}
	return version(seen)
}

// source opens a source of the changes after the cursor.
func (d *Door) source(ctx context.Context, s selection, after instance.Cursor) (*source, error) {
	if k, ok := s.one(); ok {
		e, err := k.election()
		if err != nil {
			return nil, err
		}
		reading, watch, err := d.config.Service.Watch(ctx, leadership.WatchRequest{Election: e})
		return &source{one: watch, first: reading.Lease}, err
	}
	feed, err := d.config.Service.Feed(ctx, leadership.Selection{Prefix: s.prefix()}, after)
	return &source{feed: feed}, err
}

func (s *source) close() {
	if s.feed != nil {
		s.feed.Close()
	}
	if s.one != nil {
		s.one.Close()
	}
}

// seen returns the instant up to which next has returned all changes.
func (s *source) seen() time.Time {
	if s.feed != nil {
		return instantOf(s.feed.Cursor())
	}
	return s.first.ReadAt
}

// next blocks until there are changes. Of several changes of one election it returns the last.
func (s *source) next(ctx context.Context) (changes []change, err error) {
	if s.one != nil {
		events, err := s.one.Next(ctx)
		for _, e := range events {
			changes = note(changes, e, time.Time{})
		}
		return changes, err
	}
	items, err := s.feed.Next(ctx)
	for _, item := range items {
		changes = note(changes, item.Event, instantOf(item.Cursor).Add(lag))
	}
	return changes, err
}

func note(changes []change, e leadership.Event, most time.Time) []change {
	one := change{e.Election, e.Revision, e.Revision == 1 || e.Type == leadership.EventRecreated, e.At, most}
	kept := changes[:0]
	for _, other := range changes {
		if other.election != e.Election {
			kept = append(kept, other)
			continue
		}
		one.begun = one.begun || other.begun
	}
	return append(kept, one)
}

// instantOf returns the instant in a cursor, by the store's clock.
func instantOf(c instance.Cursor) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, c.String())
	return at
}

// cursorOf returns the cursor for a client that resumes from that resource version.
func cursorOf(v string) (instance.Cursor, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n <= 0 || strings.HasPrefix(v, "+") {
		return instance.Cursor{}, invalid("", "resourceVersion", "%q is not a version that this server gave", cut(v))
	}
	c, err := instance.ParseCursor(time.UnixMicro(n).Add(-lag).UTC().Format(time.RFC3339Nano))
	if err != nil {
		return c, invalid("", "resourceVersion", "%q is not a version that this server gave", cut(v))
	}
	return c, nil
}
