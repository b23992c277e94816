package view

import "regent/leadership"

// tail is up to maxTail events of one election, in order and without a gap. Its elements are never
// changed, so that parts of it may be passed on.
type tail []leadership.Event

// maxTail is how many events of one election are kept while it is watched: a watch that is no
// further behind needs no look into the history.
const maxTail = 32

// first returns the revision of the first event; 0 if there is none.
func (t tail) first() leadership.Revision {
	if len(t) == 0 {
		return 0
	}
	return t[0].Revision
}

// last returns the revision of the last event; 0 if there is none.
func (t tail) last() leadership.Revision {
	if len(t) == 0 {
		return 0
	}
	return t[len(t)-1].Revision
}

func (t tail) has(revision leadership.Revision) bool {
	return len(t) > 0 && t.first() <= revision && revision <= t.last()
}

// after returns the events after the revision; none if they do not follow without a gap.
func (t tail) after(revision leadership.Revision) []leadership.Event {
	if !t.has(revision + 1) {
		return nil
	}
	return t[revision+1-t.first() : len(t) : len(t)]
}

// add appends an event. If there is a gap before it, the tail begins anew with it.
func (t *tail) add(e leadership.Event) {
	if e.Revision != t.last()+1 {
		*t = nil
	}
	*t = append(*t, e)
	*t = (*t)[max(len(*t)-maxTail, 0):]
}
