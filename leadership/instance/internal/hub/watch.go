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
	failure  int // the number of the last that was returned

	newest   *view.Report  // that is known, as of the last glance
	report   *view.Report  // the last that was returned or seen
	reportAt time.Duration // no other report is returned before that

	members Members // nil for none
	closed  func()
}

// Members has the changes of an election's members for a Watch. Its methods do not block.
type Members interface {
	// Sent says under which token the last event was that the watch has returned.
	Sent(leadership.Token)
	// Changes returns the changes since it was called last. MembersChanged of the hub is called
	// when there are new ones.
	Changes() []leadership.MemberChange
	// Close is called once, when the watch is closed.
	Close()
}

// News is what Listen returns: one of them.
type News struct {
	Events  []leadership.Event // they are shared, and must not be changed
	Report  *view.Report
	Members []leadership.MemberChange // so, too
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

// Tell has Listen return changes of members. It is set before the Watch is used.
func (w *Watch) Tell(m Members) { w.members = m }

// OnClose has do called by Close. There is one for each Watch, and it is set before the Watch is
// used.
func (w *Watch) OnClose(do func()) { w.closed = do }

// After returns the revision of the last event that the watch returned.
func (w *Watch) After() leadership.Revision { return w.after }

// Ready returns the events after those that were returned before, maybe none, without waiting for
// new ones; it may wait for the history. It is otherwise like Next.
func (w *Watch) Ready(ctx context.Context) ([]leadership.Event, error) {
	events, _, failed, err := w.ready(ctx)
	return events, cmp.Or(err, failed)
}

// Next blocks until there are events after those that were returned before, and returns them, at
// least one. They are shared, and must not be changed.
//
// Errors: ctx's; the cause that the Hub was closed with; HistoryCompacted if the next events are no
// longer kept; those of the store. After an error Next may be called again, and nothing is lost;
// while the store is away it fails once a second.
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

// Listen is Next that returns changes of members and reports as well, each after the events that
// are there. Of reports it returns those that this instance learns of, because the leader renews
// here or because a reader asked. If they come more often than once a second, only the last is
// returned.
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

// reported returns the report that is due, or in what time one is; 0 if there is none.
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

// ready returns the events there are or, if there are none, what to wait for. failed is why the
// history cannot be read just now.
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

// glance returns the events in memory or, if there are none, what to wait for: news, or a look into
// the history. failed is an error that the watch has not returned yet.
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
