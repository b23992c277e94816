package file

import (
	"context"
	"time"

	"regent/leadership"
)

// Spoil changes a record behind the store's back; nil removes it.
func (s *Store) Spoil(e leadership.Election, change func(*leadership.Record)) {
	w := s.writer
	w.mu.Lock()
	defer w.mu.Unlock()
	n := *w.table.entries[e]
	if change != nil {
		change(&n.record)
	} else {
		n.record, n.carried = leadership.Record{Election: e}, leadership.Carried{}
	}
	w.table.put(&n)
}

// SpoilCarried replaces what is kept of an election's policy and standing.
func (s *Store) SpoilCarried(e leadership.Election, carried leadership.Carried) {
	w := s.writer
	w.mu.Lock()
	defer w.mu.Unlock()
	n := *w.table.entries[e]
	n.carried = carried
	n.decode(w.batch.codec)
	w.table.put(&n)
}

// Hold keeps the writer busy until the returned function is called.
func (s *Store) Hold() (release func()) {
	held, released := make(chan struct{}), make(chan struct{})
	go s.writer.do(context.Background(), func(*batch) error {
		close(held)
		<-released
		return nil
	})
	<-held
	return func() { close(released) }
}

// Between reads what was committed after the instant and not after the other.
func (s *Store) Between(after, last time.Time) (events []leadership.Event, err error) {
	err = s.view(context.Background(), func(t *table, _ time.Time) error {
		events, err = t.between(after, last, 100)
		return err
	})
	return events, err
}

// Queued is how many calls wait for the writer.
func (s *Store) Queued() int { return len(s.writer.jobs) }

// Kept counts the events in the elections, those that wait, and those in the pages that are not
// forgotten.
func (s *Store) Kept() (events, waiting, alive int) {
	_ = s.view(context.Background(), func(t *table, _ time.Time) error {
		_, events = t.count()
		for e := range t.waiting {
			waiting += len(t.entries[e].waitingPlaces(events))
		}
		for _, p := range t.events.list {
			alive += p.alive
		}
		return nil
	})
	return events, waiting, alive
}

// MaxPruned is how many events go with one change.
const MaxPruned = maxPruned

// Fail makes every later commit fail.
func (s *Store) Fail() error { return s.writer.log.f.Close() }

// WithCheckpoint is a Config of which a log of that length is worth a snapshot.
func (c Config) WithCheckpoint(length int64) Config {
	c.Checkpoint = length
	return c
}

var CheckOwner = checkOwner
