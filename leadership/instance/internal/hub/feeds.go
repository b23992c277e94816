package hub

import (
	"context"
	"errors"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/backoff"
	"regent/leadership/instance/internal/view"
	"regent/leadership/rule"
)

// feeds is the state that the feeds of a hub share.
type feeds struct {
	hub  *Hub
	size int           // window.size of new windows
	most int           // window.most of new windows
	wake chan struct{} // of one: run has something to do earlier than planned

	mu      wakeMutex // guards all below, the journals except for their channels, and Feed.next
	journal *journal  // nil while there are no feeds
}

// journal has the latest events of all elections, from when the first feed joins until the last
// leaves.
type journal struct {
	ready chan struct{} // closed once window, or err without it, is set
	err   error         // why there are no more events
	feeds map[*Feed]struct{}
	news  chan struct{} // see wakeMutex; for the feeds

	window   *window // nil until the first look
	gaps     map[leadership.Election]*gap
	stale    bool      // events may have been missed
	looked   time.Time // when the last look began
	pause    time.Time // no look before that, because the last one has failed
	unmarked time.Time // since when there are entries that were committed after the window's mark; zero for none

	recalls    chan struct{} // of one: held while a feed looks further back than the window reaches
	compacted  time.Time     // the history does not reach back to that time
	compaction error         // the error of the look that found that
}

// gap is the gap between the last known event and one that was heard. The events between are looked
// for, until the heard event counts as invented.
type gap struct {
	event leadership.Event
	due   time.Time // when to look
	tries int       // looks that have not found it
}

const (
	settling = 20 * time.Millisecond // between the first two looks into a gap; doubled each time
	maxTries = 10                    // looks into a gap
	// maxGaps limits the elections whose gaps are remembered. Beyond it the next look reads
	// everything since the mark, and so finds the events that are missing.
	maxGaps = 1000

	// overlap is how far a mark is before the store's time of its look. It is far above the store's
	// guard. While there are more than maxFresh events in that time it is shorter, down to
	// minOverlap.
	overlap    = 5 * time.Second
	minOverlap = overlap / 8
	// markEvery is how often the mark moves on while there are events. A feed that resumes may see
	// the events of that time twice.
	markEvery = time.Minute
	// maxFresh is how many events there may be before the mark moves on early, markSoon after the
	// last time, so that no look comes near to leadership.MaxRecent.
	maxFresh = leadership.MaxRecent / 4
	markSoon = time.Second
	// quiet is how often the mark moves on without events, so that cursors do not grow older than
	// the history.
	quiet = rule.MinHistory / 2
	// gapEvery is the least time between a look and the next look into a gap.
	gapEvery = 100 * time.Millisecond
)

// join adds a feed that reads entries from now on.
func (s *feeds) join(f *Feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal == nil {
		s.journal = &journal{
			ready: make(chan struct{}), feeds: make(map[*Feed]struct{}),
			gaps: make(map[leadership.Election]*gap), recalls: make(chan struct{}, 1),
		}
		backoff.Signal(s.wake)
	}
	f.journal = s.journal
	f.journal.feeds[f] = struct{}{}
}

func (s *feeds) leave(f *Feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(f.journal.feeds, f); len(f.journal.feeds) == 0 {
		s.drop(f.journal)
	}
}

// drop forgets the journal. The next feed starts a new one.
func (s *feeds) drop(j *journal) {
	if s.journal == j {
		s.journal = nil
		backoff.Signal(s.wake)
	}
}

// hear handles events that were heard.
func (s *feeds) hear(events []leadership.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.journal
	if j == nil {
		return
	}
	for _, e := range events {
		if j.hear(e) {
			s.mu.wake(&j.news)
		}
	}
	backoff.Signal(s.wake)
}

// doubt notes that events may have been missed.
func (s *feeds) doubt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal != nil {
		s.journal.stale = true
		backoff.Signal(s.wake)
	}
}

// run looks into the history whenever that is due, until ctx ends or the hub is closed.
func (s *feeds) run(ctx context.Context) {
	for {
		j, due := s.due()
		if j != nil && !due.After(time.Now()) {
			s.look(ctx, j)
			_, due = s.due()
		}
		if err := s.hub.wait(ctx, s.wake, due); err != nil {
			return
		}
	}
}

// due returns the journal, nil if there are no feeds, and when to look into the history for it.
func (s *feeds) due() (j *journal, due time.Time) {
	live := s.hub.Live()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal == nil {
		return nil, due
	}
	return s.journal, s.journal.due(live)
}

// look enters the events that the history has since the mark. The first look creates the journal's
// window.
func (s *feeds) look(ctx context.Context, j *journal) {
	began := time.Now()
	s.mu.Lock()
	var mark time.Time // zero if there is no window yet
	if j.stale = false; j.window != nil {
		mark = j.window.mark
	}
	s.mu.Unlock()
	mark, recent, err := s.recent(ctx, mark)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		if j.window == nil {
			j.window = &window{began: mark, from: mark, mark: mark, known: make(map[leadership.Election]leadership.Revision), size: s.size, most: s.most}
			close(j.ready)
		}
		j.window.take(recent.Events, settled(recent))
		j.settle(began)
	case ctx.Err() != nil: // run ends
	case j.window == nil, errors.Is(err, leadership.HistoryCompacted):
		if j.err = err; j.window == nil {
			close(j.ready)
		}
		s.drop(j)
	default:
		j.stale, j.pause = true, time.Now().Add(view.Poll)
	}
	s.mu.wake(&j.news)
}

// recent reads the events that were committed after the mark. Without a mark it chooses one, and
// also reads some events before it, so that none is missing if times are not in the order of
// revisions.
func (s *feeds) recent(ctx context.Context, mark time.Time) (time.Time, rule.Recent, error) {
	if !mark.IsZero() {
		recent, err := s.since(ctx, mark)
		return mark, recent, err
	}
	var now time.Time
	err := s.hub.askHistory(ctx, func(ctx context.Context) (err error) {
		now, err = s.hub.store.Now(ctx)
		return err
	})
	if err != nil {
		return mark, rule.Recent{}, err
	}
	for before := overlap; ; before /= 2 {
		recent, err := s.since(ctx, now.Add(-2*before))
		if !errors.Is(err, leadership.HistoryCompacted) || before <= minOverlap {
			return now.Add(-before), recent, err
		}
	}
}

// settled returns the mark after a look. Its events are in the order of their times.
func settled(recent rule.Recent) (mark time.Time) {
	for before := overlap; ; before /= 2 {
		mark = recent.Now.Add(-before)
		if n := len(recent.Events) - maxFresh; before <= minOverlap || n < 0 || !recent.Events[n].At.After(mark) {
			return mark
		}
	}
}

// since reads the events of all elections that were committed after the instant.
func (s *feeds) since(ctx context.Context, at time.Time) (recent rule.Recent, err error) {
	err = s.hub.askHistory(ctx, func(ctx context.Context) error {
		recent, err = s.hub.store.Since(ctx, at)
		return err
	})
	return recent, err
}

// hear handles an event that was heard, and reports whether it was entered.
func (j *journal) hear(e leadership.Event) (entered bool) {
	missing := true
	if j.window != nil {
		entered, missing = j.window.hear(e)
	}
	if entered && j.unmarked.IsZero() {
		j.unmarked = time.Now()
	}
	g, ok := j.gaps[e.Election]
	switch {
	case !missing || ok && e.Revision == g.event.Revision:
	case !ok && len(j.gaps) == maxGaps:
		j.stale = true
	default:
		if ok && e.Revision < g.event.Revision {
			e = g.event
		}
		j.gaps[e.Election] = &gap{event: e, due: time.Now()}
	}
	return entered
}

// missed notes that a look, begun at that time, has not found the missing events, and reports
// whether to forget the gap.
func (g *gap) missed(began time.Time) (forget bool) {
	if began.Before(g.due) {
		return false // it may have come too early
	}
	g.due = time.Now().Add(backoff.After(g.tries, settling, settling<<maxTries))
	g.tries++
	return g.tries >= maxTries
}

// settle updates the gaps and times after a look that began at that time.
func (j *journal) settle(began time.Time) {
	j.looked = began
	if j.unmarked = began; j.window.fresh == 0 {
		j.unmarked = time.Time{}
	}
	for e, g := range j.gaps {
		if !j.window.news(g.event) || g.missed(began) {
			delete(j.gaps, e)
		}
	}
}

// due returns when to look into the history.
func (j *journal) due(live bool) time.Time {
	if j.window == nil || j.stale {
		return j.pause
	}
	due := j.looked.Add(quiet)
	if !live {
		due = earliest(due, j.looked.Add(view.Poll))
	}
	if !j.unmarked.IsZero() {
		due = earliest(due, j.unmarked.Add(markEvery))
	}
	if j.window.fresh > maxFresh {
		due = earliest(due, j.looked.Add(markSoon))
	}
	for _, g := range j.gaps {
		due = earliest(due, latest(g.due, j.looked.Add(gapEvery)))
	}
	return due
}
