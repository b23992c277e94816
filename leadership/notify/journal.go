package notify

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"regent/leadership"
)

// journal is what happened lately in all elections, for all feeds of the hub. It is kept while there are any.
//
// Events of one election stand in it in order and without a gap. To begin with an election it has to know that nothing is missing before
// the first event it hears, and looks into the history; from then on it goes by the revisions.
type journal struct {
	hub  *Hub
	wake chan struct{} // the goroutine that looks

	mu      sync.Mutex // guards all below, and the feeds
	feeds   map[*Feed]struct{}
	resumes map[Cursor]*missed
	entries []entry
	first   int                                         // the number of entries[0]; it only rises
	from    time.Time                                   // the entries have every event that was committed after this instant
	mark    time.Time                                   // and every event that was committed up to this one is among them, or before; zero while there is no journal
	known   map[leadership.Election]leadership.Revision // of the last entry of each election
	heard   map[leadership.Election]leadership.Revision // beyond known, and to be looked up
	futile  int                                         // looks in a row that have not found all of heard
	looked  time.Time
	stale   bool // look as soon as possible
	dirty   bool // there are entries that were committed after mark
}

// entry is one event with the mark there was when it was entered.
type entry struct {
	leadership.Event
	mark time.Time
}

const (
	// maxEntries is how many events of all elections are kept in memory.
	maxEntries = 16 << 10
	// overlap is by how much a mark lies before the store's time of the look it stands on. It is far above the store's guard.
	overlap = 5 * time.Second
	// markEvery is how often the mark moves on while there is news: what is told twice to whoever resumes is what happened within it.
	markEvery = time.Minute
)

func (j *journal) init(h *Hub) {
	j.hub = h
	j.wake = make(chan struct{}, 1)
	j.feeds = make(map[*Feed]struct{})
	j.resumes = make(map[Cursor]*missed)
	j.clear()
}

func (j *journal) clear() {
	j.first += len(j.entries)
	j.entries, j.from, j.mark = nil, time.Time{}, time.Time{}
	j.known = make(map[leadership.Election]leadership.Revision)
	j.heard = make(map[leadership.Election]leadership.Revision)
	j.stale, j.dirty = false, false
}

// hear takes events. What follows on what is known is entered at once; anything else has to be looked up.
func (j *journal) hear(events []leadership.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.feeds) == 0 {
		return
	}
	for _, e := range events {
		known := j.known[e.Election]
		switch {
		case e.Revision <= known:
		case e.Revision == known+1 && !j.mark.IsZero():
			j.enter(e)
		default:
			j.heard[e.Election] = max(j.heard[e.Election], e.Revision)
			signal(j.wake)
		}
	}
	j.tell()
}

// enter adds an event that is the next one of its election.
func (j *journal) enter(e leadership.Event) {
	j.entries = append(j.entries, entry{e, j.mark})
	j.known[e.Election] = e.Revision
	if j.heard[e.Election] <= e.Revision {
		delete(j.heard, e.Election)
	}
	j.dirty = true
	if over := len(j.entries) - maxEntries; over > 0 {
		for _, old := range j.entries[:over] {
			j.from = latest(j.from, old.At)
		}
		j.entries = slices.Delete(j.entries, 0, over)
		j.first += over
	}
}

func (j *journal) tell() {
	for f := range j.feeds {
		signal(f.wake)
	}
}

func (j *journal) resync() {
	j.mu.Lock()
	j.stale = true
	j.mu.Unlock()
	signal(j.wake)
}

// run looks into the history whenever that is due, until ctx ends.
func (j *journal) run(ctx context.Context) {
	for {
		again := j.attend(ctx)
		var due <-chan time.Time
		var timer *time.Timer
		if again != never {
			timer = time.NewTimer(again)
			due = timer.C
		}
		select {
		case <-j.wake:
		case <-due:
		case <-ctx.Done():
		}
		if timer != nil {
			timer.Stop()
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// attend looks into the history if that is due, and returns after how long to attend again.
func (j *journal) attend(ctx context.Context) time.Duration {
	since, due := j.due()
	if due > 0 || due == never {
		return due
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := j.look(ctx, since); err != nil {
		return j.hub.poll
	}
	_, due = j.due()
	if due == 0 {
		return settling // what was heard is not there yet
	}
	return due
}

// due returns from when on to look, and after how long: 0 for at once, or never.
func (j *journal) due() (since time.Time, in time.Duration) {
	live := j.hub.Live()
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.feeds) == 0 {
		j.clear()
	}
	age := time.Since(j.looked)
	switch {
	case len(j.feeds) == 0:
		return j.mark, never
	case j.mark.IsZero(), j.stale, len(j.heard) > 0:
		return j.mark, 0
	case !live:
		return j.mark, max(j.hub.poll-age, 0)
	case j.dirty:
		return j.mark, max(markEvery-age, 0)
	}
	return j.mark, never
}

// look enters what the history has since the mark, and moves the mark. Without a mark it begins a journal.
func (j *journal) look(ctx context.Context, since time.Time) error {
	j.mu.Lock()
	j.stale = false
	j.mu.Unlock()
	if since.IsZero() {
		now, err := j.hub.history.Now(ctx)
		if err != nil {
			return err
		}
		j.begin(now.Add(-overlap))
		since = now.Add(-overlap)
	}
	recent, err := j.hub.history.Since(ctx, since)
	if errors.Is(err, leadership.HistoryCompacted) {
		j.fail(err)
	}
	if err != nil {
		return err
	}
	j.take(recent)
	return nil
}

// begin starts a journal at the instant, unless there is one.
func (j *journal) begin(at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.mark.IsZero() {
		j.from, j.mark = at, at
	}
}

// take enters what was read.
func (j *journal) take(recent leadership.Recent) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range recent.Events {
		if e.Revision > j.known[e.Election] {
			j.enter(e)
		}
	}
	if j.futile++; len(j.heard) == 0 || j.futile == maxFutile {
		clear(j.heard)
		j.futile = 0
	}
	j.mark = latest(j.mark, recent.Now.Add(-overlap))
	j.looked = time.Now()
	j.dirty = len(recent.Events) > 0
	j.tell()
}

// fail ends all feeds: too much has happened to tell all of it.
func (j *journal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for f := range j.feeds {
		f.err = err
	}
	j.tell()
	j.clear()
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
