package crash

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// compare returns the first difference between the expected view and the seen one.
func (v view) compare(s *seen, otherBoot bool) error {
	for name, listed := range s.listed {
		snap := s.snapshots[name]
		if err := v.elections[name].compare(snap, otherBoot); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if exists := snap.Record.Revision > 0; listed != exists {
			return fmt.Errorf("%s exists: %v, is listed: %v", name, exists, listed)
		}
	}
	for name, events := range s.events {
		if want := v.elections[name].events; !slices.Equal(want, events) {
			return fmt.Errorf("%s: its events are %v, want %v", name, events, want)
		}
	}
	return v.compareRecent(s, otherBoot)
}

func (e election) compare(snap rule.Snapshot, otherBoot bool) error {
	r, want := snap.Record, e.lease
	if otherBoot { // leases run anew: challenge checks that
		if r.Revision != want.Revision || r.Token != want.Token || r.Deleted != want.Deleted || r.KeyHash != e.key {
			return fmt.Errorf("revision %d, token %d, key %x; want revision %d, token %d, key %x",
				r.Revision, r.Token, r.KeyHash[:4], want.Revision, want.Token, e.key[:4])
		}
		return nil
	}
	if want.Revision == 0 {
		if r.Revision != 0 {
			return fmt.Errorf("revision %d of an election that was never seen", r.Revision)
		}
		return nil
	}
	if got := (&rule.Snapshot{Record: r, Now: want.ReadAt}).Lease(); got != want {
		return fmt.Errorf("got %+v, want %+v", got, want)
	}
	if r.KeyHash != e.key {
		return errors.New("the key differs")
	}
	return nil
}

// compareRecent compares the events of all elections together.
func (v view) compareRecent(s *seen, otherBoot bool) error {
	if otherBoot || s.now.IsZero() {
		return nil
	}
	after := s.now.Add(-history + time.Minute)
	if after.Before(v.pruned) {
		after = v.pruned
	}
	events, err := s.recent(after)
	if err != nil {
		return err
	}
	if want := v.recent(after); !slices.Equal(want, events) {
		return fmt.Errorf("the events after %v are %v, want %v", after, events, want)
	}
	return nil
}

// announced compares the unannounced events with those that calls have marked, or may have marked,
// as announced.
func (t *truth) announced(s *seen, p plan, n int) error {
	may := make(map[leadership.EventID]bool)
	for _, call := range t.calls {
		if call.at >= p.At {
			break
		}
		for _, id := range call.Marks {
			may[id] = true
			if call.told < p.Seen && call.answer.Code == "" && s.unannounced[id] {
				return fmt.Errorf("event %v is unannounced, and call %s marked it", id, call.ID)
			}
		}
	}
	for _, e := range t.views[n].elections {
		for _, event := range e.events {
			if !s.unannounced[event.ID()] && !may[event.ID()] {
				return fmt.Errorf("event %v counts as announced, and no call marked it", event.ID())
			}
		}
	}
	return nil
}
