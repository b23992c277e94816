package hub

import "regent/leadership"

// run is some events of one election, in order and without a gap, at most maxRun. What stands in it is never changed, so that parts of it may
// be passed on.
type run []leadership.Event

// maxRun is how many events of one election are kept in memory while somebody listens to it: as many as a watch may come late, without a look
// into the history.
const maxRun = 32

// first is the revision of the first event; 0 if there is none.
func (r run) first() leadership.Revision {
	if len(r) == 0 {
		return 0
	}
	return r[0].Revision
}

// last is the revision of the last event; 0 if there is none.
func (r run) last() leadership.Revision {
	if len(r) == 0 {
		return 0
	}
	return r[len(r)-1].Revision
}

func (r run) has(revision leadership.Revision) bool {
	return len(r) > 0 && r.first() <= revision && revision <= r.last()
}

// after is what follows on the revision; nothing if it does not follow without a gap.
func (r run) after(revision leadership.Revision) []leadership.Event {
	if !r.has(revision + 1) {
		return nil
	}
	return r[revision+1-r.first() : len(r) : len(r)]
}

// add takes an event. If it does not follow on the others it begins a run of its own.
func (r *run) add(e leadership.Event) {
	if e.Revision != r.last()+1 {
		*r = nil
	}
	*r = append(*r, e)
	*r = (*r)[max(len(*r)-maxRun, 0):]
}
