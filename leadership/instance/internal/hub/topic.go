package hub

import (
	"time"

	"regent/leadership"
)

// topic is one election that somebody listens to. The hub's mutex guards it.
type topic struct {
	election  leadership.Election
	listeners map[*Listener]struct{}
	watches   map[*Watch]struct{}
	news      bell                          // for the watches
	looks     map[leadership.Revision]*look // that are under way, by the revision after which they read

	tail   run                 // the last events
	ahead  run                 // what was heard last and does not follow on them
	heard  leadership.Revision // the last of all that were ever heard and do not follow, until they do or turn out to be made up; 0 for none
	rumour rumour              // of that

	// The history had nothing after revision end when somebody looked last; synced says that the hub would have been told of what came since,
	// if it is live. The election need not have come to that revision: a reader can claim to have seen any.
	end    leadership.Revision
	looked time.Time // when that look began; zero if nobody has looked
	synced bool
	pause  time.Time // and no look before that, for the last one has failed
	err    error     // like this
}

func newTopic(e leadership.Election) *topic {
	return &topic{
		election:  e,
		listeners: make(map[*Listener]struct{}),
		watches:   make(map[*Watch]struct{}),
		looks:     make(map[leadership.Revision]*look),
	}
}

// hear takes an event, and says whether it is news.
func (t *topic) hear(e leadership.Event) bool {
	switch {
	case e.Revision <= t.tail.last(), t.ahead.has(e.Revision):
		return false
	case t.follows(e.Revision):
		t.tail.add(e)
		t.join()
	default:
		t.ahead.add(e)
		t.expect(e.Revision)
	}
	return true
}

// expect has the history asked for an event that was heard.
func (t *topic) expect(r leadership.Revision) {
	t.heard = max(t.heard, r)
	t.rumour = newRumour()
}

// forget does not wait any longer for what was heard and does not follow.
func (t *topic) forget() { t.ahead, t.heard = nil, 0 }

// follows says whether nothing can be missing before the revision.
func (t *topic) follows(r leadership.Revision) bool {
	if len(t.tail) > 0 {
		return r == t.tail.last()+1
	}
	return t.synced && r == t.end+1
}

// join adds what was heard ahead to the tail, as soon as nothing is missing between.
func (t *topic) join() {
	for _, e := range t.ahead {
		if t.follows(e.Revision) {
			t.tail.add(e)
		}
	}
	if t.heard <= t.tail.last() {
		t.forget()
	}
}

// learn takes what a look that began at that time has found after a revision, in order and without a gap; all says that there was no more. It
// says whether anything was news.
func (t *topic) learn(after leadership.Revision, events []leadership.Event, all bool, began time.Time) bool {
	last := t.tail.last()
	for _, e := range events {
		if e.Revision > t.tail.last() {
			t.tail.add(e)
		}
	}
	if all {
		t.sync(max(after, run(events).last()), began)
	}
	t.join()
	return t.tail.last() > last
}

// sync takes the word of a look that the history has nothing after the revision.
func (t *topic) sync(end leadership.Revision, began time.Time) {
	if t.synced && end > t.end && end > t.tail.last() {
		return // a reader has made up where it is
	}
	t.end, t.looked, t.synced = end, began, true
	if t.tail.first() > end+1 { // and so it may be made up
		t.expect(t.tail.last())
		t.ahead, t.tail = t.tail, nil
	}
	if t.heard > end && t.rumour.missed(began) {
		t.forget()
	}
}

// doubt says that events may have been missed, and whether the hub is live from now on. If it is not, the next poll finds them.
func (t *topic) doubt(live bool) {
	if !live && t.synced {
		t.looked = time.Now()
		return
	}
	t.synced = false
	clear(t.looks) // they may have begun too early, and nobody joins them any more
}

// head is the revision to which the topic has come, as far as is known.
func (t *topic) head() leadership.Revision { return max(t.end, t.tail.last()) }

// next says when to look for what comes after the revision though nobody is woken, and after which revision to read then. The zero time is
// never.
func (t *topic) next(after leadership.Revision, live bool, poll time.Duration) (from leadership.Revision, due time.Time) {
	head := t.head()
	switch {
	case t.looked.IsZero() || after < head:
		return after, time.Now()
	case !t.synced:
		return head, time.Now()
	}
	if !live {
		due = t.looked.Add(poll)
	}
	if t.heard > after && (live || t.rumour.due.Before(due)) {
		due = t.rumour.due
	}
	return head, due
}

// newest is the last event that was heard or read; the zero Event if there is none.
func (t *topic) newest() leadership.Event {
	for _, r := range []run{t.ahead, t.tail} {
		if n := len(r); n > 0 {
			return r[n-1]
		}
	}
	return leadership.Event{}
}
