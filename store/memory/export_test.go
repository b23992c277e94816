package memory

import (
	"regent/leadership"
	"regent/leadership/rule"
)

// Spoil changes a record behind the store's back; nil removes it.
func (s *Store) Spoil(e leadership.Election, change func(*rule.Record)) {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	if change == nil {
		delete(s.data.records, e)
		return
	}
	r := s.data.records[e]
	change(&r.record)
	s.data.records[e] = r
}
