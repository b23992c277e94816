package test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"regent/leadership"
)

// standing is the full state of an election.
type standing struct {
	Lease   leadership.Lease
	Code    leadership.Code // why there is no lease
	History []leadership.Event
}

// look reads the state of the elections, past the cache.
func (s *sweep) look(elections []leadership.Election) []standing {
	s.t.Helper()
	all := make([]standing, len(elections))
	for i, e := range elections {
		lease, err := s.direct.Get(s.t.Context(), e)
		all[i].Code, _ = errors.AsType[leadership.Code](err)
		if err == nil {
			all[i].Lease = s.plain(lease)
		}
		events, err := s.direct.Events(s.t.Context(), leadership.EventsRequest{Election: e})
		if err != nil && !errors.Is(err, leadership.NotFound) {
			s.t.Errorf("the history of %s: %v", e, err)
		}
		for _, event := range events {
			event.Election, event.RequestID, event.At = "", "", s.since(event.At)
			all[i].History = append(all[i].History, event)
		}
	}
	return all
}

// plain returns the lease without the parts that differ from one trial to the next.
func (s *sweep) plain(l leadership.Lease) leadership.Lease {
	l.Election, l.CreatedAt = "", 0
	for _, at := range []*time.Time{&l.AcquiredAt, &l.LastHeartbeat, &l.LeaseExpiration, &l.ReadAt, &l.VacantSince} {
		*at = s.since(*at)
	}
	if s.clock == nil {
		l.ExpiresIn, l.RenewIn, l.LockedFor = 0, 0, 0
	}
	return l
}

// since returns an instant relative to the beginning of the trial; if the clock is not ours, all
// instants are the same.
func (s *sweep) since(at time.Time) time.Time {
	if at.IsZero() || s.clock == nil {
		return time.Time{}
	}
	return time.Unix(0, 0).UTC().Add(at.Sub(s.began))
}

// historyOf returns the history in words.
func historyOf(s standing) string {
	var words []string
	for _, e := range s.History {
		words = append(words, fmt.Sprintf("%s %d", e.Type, e.Token))
	}
	return strings.Join(words, ", ")
}
