package crash

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"regent/leadership"
)

// maxPruned is how many old events one change deletes at most; see store/file.
const maxPruned = 100

// election is one election as it must be in a file.
type election struct {
	lease  leadership.Lease // at the instant ReadAt of its last change
	key    leadership.KeyHash
	events []leadership.Event // that are kept
}

// view is all elections after some commit.
type view struct {
	elections map[leadership.Election]election
	pruned    time.Time // of the newest deleted event; zero if there is none
}

func newView() view { return view{elections: make(map[leadership.Election]election)} }

func (v view) clone() view { return view{maps.Clone(v.elections), v.pruned} }

func (v *view) apply(ch change) error {
	was := v.elections[ch.lease.Election]
	now := election{lease: ch.lease, key: was.key, events: slices.Clone(was.events)}
	revision := was.lease.Revision
	for _, e := range ch.events {
		if revision++; e.Revision != revision || e.Token < was.lease.Token {
			return fmt.Errorf("election %q has event %d with token %d after revision %d with token %d",
				e.Election, e.Revision, e.Token, revision-1, was.lease.Token)
		}
		if e.Type == leadership.EventAcquired {
			now.key = keyOf(ch.call.Key).Hash()
		}
		now.events = append(now.events, e)
	}
	if now.lease.Revision != revision {
		return fmt.Errorf("election %q is at revision %d, and its events lead to %d", ch.lease.Election, now.lease.Revision, revision)
	}
	if now.lease.State == leadership.Vacant {
		now.key = leadership.KeyHash{}
	}
	if len(ch.events) > 0 {
		v.prune(&now)
	}
	v.elections[ch.lease.Election] = now
	return nil
}

// prune deletes what the store deletes with the change.
func (v *view) prune(e *election) {
	for n := 0; n < maxPruned && e.events[0].At.Add(history).Before(e.lease.ReadAt); n++ {
		if at := e.events[0].At; v.pruned.Before(at) {
			v.pruned = at
		}
		e.events = e.events[1:]
	}
}

// recent returns the events after the instant, in the order of Store.Since.
func (v view) recent(after time.Time) (events []leadership.Event) {
	for _, e := range v.elections {
		for _, event := range e.events {
			if event.At.After(after) {
				events = append(events, event)
			}
		}
	}
	slices.SortFunc(events, func(a, b leadership.Event) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Election, b.Election), cmp.Compare(a.Revision, b.Revision))
	})
	return events
}
