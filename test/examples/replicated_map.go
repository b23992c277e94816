package examples

import (
	"context"
	"encoding/json"
	"maps"
	"sync"

	"regent/leadership"
	"regent/leadership/client"
)

// Map is a map of which each program of a fleet has a copy, in step with the election's journal.
// The leader sets keys; it follows its own journal, too.
type Map struct {
	mu     sync.Mutex
	values map[string]string
	upTo   leadership.Index // the entries that are in values
}

// Follow keeps the copy in step until ctx ends.
func (m *Map) Follow(ctx context.Context, agent *client.Client, election leadership.Election) error {
	for item, err := range agent.Follow(ctx, election, m.upTo) {
		if err != nil {
			return err
		}
		if err := m.apply(item); err != nil {
			return err
		}
	}
	return nil
}

// apply takes a snapshot in the place of all values, or an entry, which is a map of those that are
// set.
func (m *Map) apply(item client.JournalItem) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.upTo = item.Index()
	if item.Entry != nil {
		return json.Unmarshal(item.Entry.Data, &m.values) // adds to the present values
	}
	m.values = nil
	return json.Unmarshal(item.Snapshot.Data, &m.values)
}

// Set sets keys, as the leader. Once it returns they are durable, and every copy will have them.
func Set(ctx context.Context, j *client.Journal, values map[string]string) (leadership.Index, error) {
	return j.Append(ctx, client.Entry{Type: "set", Data: values})
}

// Compact replaces the journal, as the leader, by the values that this copy has.
func (m *Map) Compact(ctx context.Context, j *client.Journal) error {
	values, upTo := m.Copy()
	return j.Snapshot(ctx, upTo, values)
}

// Copy returns the values, and the index of the last entry that is in them.
func (m *Map) Copy() (values map[string]string, upTo leadership.Index) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.values), m.upTo
}
