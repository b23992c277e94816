package hub

import (
	"cmp"
	"context"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
)

// Watch gets every event of one election after a revision: once, in order and without a gap. It
// belongs to one goroutine.
type Watch struct {
	hub      *Hub
	election *view.Election // nil once it is closed; guarded by the hub's mutex
	after    leadership.Revision
	failure  int // the number of the last failure that was returned

	newest   *view.Report  // the newest known report, as of the last glance
	report   *view.Report  // the last report that was returned or seen
	reportAt time.Duration // no other report is returned before that

	members Members // nil for none
	closed  func()
}

// Members has the changes of an election's members for a Watch. Its methods do not block.
type Members interface {
	// Sent is called with the token of the last event that the watch has returned.
	Sent(leadership.Token)
	// Changes returns the changes since its last call. Hub.MembersChanged is called when there are
	// new ones.
	Changes() []leadership.MemberChange
	// Close is called once, when the watch is closed.
	Close()
}

// News is the result of Listen: one of its fields is set.
type News struct {
	Events  []leadership.Event // shared: must not be changed
	Report  *view.Report
	Members []leadership.MemberChange // shared: must not be changed
}

// Watch returns a watch on the events after the revision, 0 for all. The caller must close it. The
// election need not exist yet, nor have reached the revision.
func (h *Hub) Watch(e leadership.Election, after leadership.Revision) *Watch {
	w := &Watch{hub: h, after: after}
	h.View(func(v *view.View, _ time.Duration) {
		w.election = v.Watch(e)
		w.failure = v.Failure(e).Number
	})
	return w
}

// Close ends the watch. Idempotent.
func (w *Watch) Close() {
	w.hub.View(func(v *view.View, _ time.Duration) {
		if w.election != nil {
			v.Unwatch(w.election)
			w.election = nil
		}
	})
	if w.members != nil {
		w.members.Close()
		w.members = nil
	}
	if w.closed != nil {
		w.closed()
	}
}

// Tell makes Listen return changes of members. Call it before the Watch is used.
func (w *Watch) Tell(m Members) { w.members = m }

// OnClose sets the one function that Close calls. Call it before the Watch is used.
func (w *Watch) OnClose(do func()) { w.closed = do }

// After returns the revision of the last event that the watch returned.
func (w *Watch) After() leadership.Revision { return w.after }

// Ready returns the events that follow those already returned, perhaps none, without waiting for
// new ones; it may wait for the history. Otherwise it is like Next.
func (w *Watch) Ready(ctx context.Context) ([]leadership.Event, error) {
	events, _, failed, err := w.ready(ctx)
	return events, cmp.Or(err, failed)
}

// Next blocks until there are events that follow those already returned, and returns at least one.
// They are shared, and must not be changed.
//
// Errors: ctx's; the cause that the Hub was closed with; HistoryCompacted if the next events are no
// longer kept; those of the store. After an error Next may be called again, and nothing is lost;
// while the store is unavailable it fails once a second.
func (w *Watch) Next(ctx context.Context) ([]leadership.Event, error) {
	for {
		events, news, _, err := w.ready(ctx)
		if len(events) > 0 || err != nil {
			return events, err
		}
		if err := w.hub.wait(ctx, news, time.Time{}); err != nil {
			return nil, err
		}
	}
}

// reportEvery is how often a watch returns a report at most.
const reportEvery = time.Second

// Listen is Next that also returns changes of members and reports, after the available events. It
// returns the reports that this instance learns of, because the leader renews here or because a
// reader asked. If they come more often than once a second, only the last is returned.
func (w *Watch) Listen(ctx context.Context) (News, error) {
	for {
		events, wake, _, err := w.ready(ctx)
		if len(events) > 0 || err != nil {
			return News{Events: events}, err
		}
		if w.members != nil {
			if changes := w.members.Changes(); len(changes) > 0 {
				return News{Members: changes}, nil
			}
		}
		report, left := w.reported()
		if report != nil {
			return News{Report: report}, nil
		}
		var due time.Time
		if left > 0 {
			due = time.Now().Add(left)
		}
		if err := w.hub.wait(ctx, wake, due); err != nil {
			return News{}, err
		}
	}
}

// Seen says that the reader has seen the report of the lease.
func (w *Watch) Seen(l leadership.Lease) { w.report = view.ReportOf(l) }

// reported returns the report that is due, or the time until one is; 0 if there is none.
func (w *Watch) reported() (report *view.Report, left time.Duration) {
	if !w.newest.After(w.report) {
		return nil, 0
	}
	now := w.hub.now()
	if left = max(w.reportAt-now, 0); left > 0 {
		return nil, left
	}
	w.report, w.reportAt = w.newest, now+reportEvery
	return w.report, 0
}

// ready returns the available events or, if there are none, the channel to wait for. failed is why
// the history cannot be read at present.
func (w *Watch) ready(ctx context.Context) (events []leadership.Event, news <-chan struct{}, failed, err error) {
	for len(events) == 0 && err == nil {
		if err = w.hub.over(ctx); err != nil {
			break
		}
		var l *look
		if events, news, l, failed, err = w.glance(); l == nil {
			break
		}
		events, err = l.wait(ctx, w.hub)
		w.failure = max(w.failure, l.failed(err))
		events = later(events, w.after)
	}
	if n := len(events); n > 0 {
		w.after = events[n-1].Revision
		if w.members != nil {
			w.members.Sent(events[n-1].Token)
		}
	}
	return events, news, failed, err
}

// glance returns the events in memory or, if there are none, the news channel or the look into the
// history to wait for. failed is an error that the watch has not returned yet.
func (w *Watch) glance() (events []leadership.Event, news <-chan struct{}, l *look, failed, err error) {
	h := w.hub
	now := h.now() // before the mutex, which thousands of watches want at once
	h.mu.Lock()
	defer h.unlock()
	events, want, failed := w.election.After(w.after, now)
	w.newest = w.election.Report()
	switch failure := h.view.Failure(w.election.Name()); {
	case len(events) > 0:
		return events, nil, nil, nil, nil
	case want != nil:
		return nil, nil, h.look(w.election.Name(), *want), nil, nil
	case failure.Number > w.failure && (failed != nil || failure.After >= w.after):
		w.failure, err = failure.Number, failure.Err
	}
	return nil, h.mu.wait(&w.election.News), nil, failed, err
}

// later returns the events after the revision.
func later(events []leadership.Event, after leadership.Revision) []leadership.Event {
	for len(events) > 0 && events[0].Revision <= after {
		events = events[1:]
	}
	return events
}
