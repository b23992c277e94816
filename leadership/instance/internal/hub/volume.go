package hub

import (
	"time"

	"regent/leadership"
)

// volume is what feeds stand on, from the first that joins until the last has left. The journal's mutex guards it, but for the channels.
type volume struct {
	ready chan struct{} // closed once window is set, or err without it
	err   error         // why there is no more
	feeds map[*Feed]struct{}
	news  broadcast // for the feeds

	size     int     // of the window
	window   *window // nil until the first look has found what it begins with
	gaps     map[leadership.Election]*gap
	stale    bool      // events may have been missed
	looked   time.Time // when the last look began
	pause    time.Time // and no look before that, for the last one has failed
	unmarked time.Time // since when there are entries that were committed after the window's mark; zero if there are none

	recalls    chan struct{} // of one: may be received by who looks further back than the window reaches
	compacted  time.Time     // nobody can look as far back as that
	compaction error         // and this is why
}

// gap is before the event, which was heard and does not follow on what is known. What lies between has to be looked for.
type gap struct {
	event leadership.Event
	due   time.Time // when to look for it; it may have been made up
	tries int       // looks that have not found it
}

const (
	settling = 20 * time.Millisecond // between the first two looks for an event; doubled each time
	maxTries = 10                    // and then it counts as made up
)

// missed takes a look, begun at that time, that has not found the event, and reports whether to forget it.
func (g *gap) missed(began time.Time) (forget bool) {
	if began.Before(g.due) {
		return false // it may have come too early
	}
	g.due = time.Now().Add(settling << g.tries)
	g.tries++
	return g.tries >= maxTries
}

const (
	// overlap is by how much a mark lies before the store's time of the look that it stands on. It is far above the store's guard.
	overlap = 5 * time.Second
	// markEvery is how often the mark moves on while there is news: what is told twice to whoever resumes is what happened within it.
	markEvery = time.Minute
	// maxFresh is how much news there may be before the mark moves on sooner, and it does so markSoon after the last time, so that no look
	// comes near to leadership.MaxRecent.
	maxFresh = leadership.MaxRecent / 4
	markSoon = time.Second
	// quiet is how often the mark moves on without news, lest the cursors grow older than the history.
	quiet = leadership.MinHistory / 2
	// gapEvery is how soon after another look a gap is looked into.
	gapEvery = 100 * time.Millisecond
)

func newVolume(size int) *volume {
	v := &volume{
		size:    size,
		ready:   make(chan struct{}),
		feeds:   make(map[*Feed]struct{}),
		gaps:    make(map[leadership.Election]*gap),
		recalls: make(chan struct{}, 1),
	}
	signal(v.recalls)
	return v
}

// hear takes an event. It says whether that was entered.
func (v *volume) hear(e leadership.Event) (entered bool) {
	missing := true
	if v.window != nil {
		entered, missing = v.window.hear(e)
	}
	switch {
	case missing:
		v.miss(e)
	case entered && v.unmarked.IsZero():
		v.unmarked = time.Now()
	}
	return entered
}

// miss has the event looked for, unless it was heard before.
func (v *volume) miss(e leadership.Event) {
	g, ok := v.gaps[e.Election]
	switch {
	case !ok:
		v.gaps[e.Election] = &gap{event: e, due: time.Now()}
	case e.Revision != g.event.Revision:
		if e.Revision > g.event.Revision {
			g.event = e
		}
		g.due, g.tries = time.Now(), 0
	}
}

// fail ends all feeds.
func (v *volume) fail(err error) {
	if v.err = err; v.window == nil {
		close(v.ready)
	}
}

// take enters what a look that began at that time has found since the mark. The first one opens the window there.
func (v *volume) take(recent leadership.Recent, mark, began time.Time) {
	if v.window == nil {
		v.window = newWindow(mark, v.size)
		close(v.ready)
	}
	v.window.take(recent.Events, recent.Now.Add(-overlap))
	v.settle(began)
}

// widen enters what was found since an instant before the window's.
func (v *volume) widen(recent leadership.Recent, from, began time.Time) {
	risen := v.window.widen(recent.Events, from, recent.Now.Add(-overlap))
	for f := range v.feeds {
		if f.next >= v.window.first { // it is not too slow already
			f.next += risen
		}
	}
	v.settle(began)
}

// settle draws the conclusions from a look that began at that time.
func (v *volume) settle(began time.Time) {
	v.looked = began
	if v.unmarked = began; v.window.fresh == 0 {
		v.unmarked = time.Time{}
	}
	for e, g := range v.gaps {
		if !v.window.news(g.event) || g.missed(began) {
			delete(v.gaps, e)
		}
	}
}

// due says when to look into the history.
func (v *volume) due(live bool, poll time.Duration) time.Time {
	if v.window == nil || v.stale {
		return v.pause
	}
	due := v.looked.Add(quiet)
	if !live {
		due = earliest(due, v.looked.Add(poll))
	}
	if !v.unmarked.IsZero() {
		due = earliest(due, v.unmarked.Add(markEvery))
	}
	if v.window.fresh > maxFresh {
		due = earliest(due, v.looked.Add(markSoon))
	}
	for _, g := range v.gaps {
		due = earliest(due, latest(g.due, v.looked.Add(gapEvery)))
	}
	return due
}
