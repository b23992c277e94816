package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"regent/leadership"
	"regent/store/internal/history"
)

// Config says how to open a file; its zero value works.
type Config struct {
	// Clock is the store's clock. The zero Clock stands for the machine's own.
	Clock Clock
	// History is how long events are kept: leadership.MinHistory or more, 0 for
	// leadership.DefaultHistory. Older ones are deleted as their election changes; its newest event
	// always stays.
	History time.Duration
	// Codec reads and writes policy and standing; the zero Codec is this program's.
	Codec leadership.Codec
}

// Store is an open file.
type Store struct {
	db      *bbolt.DB
	history history.Span
	codec   leadership.Codec
	writer  *writer
}

var _ leadership.Store = (*Store)(nil)

// Open opens the file at path, or creates it with mode 0600 in a folder that exists. It waits a
// second for another process to close the file, and then returns an error that says that it is in
// use.
func Open(path string, c Config) (*Store, error) {
	span, err := history.Of(c.History)
	if err != nil {
		return nil, fmt.Errorf("file: %w", err)
	}
	db, file, err := openFile(path)
	if err != nil {
		return nil, err
	}
	machine := c.Clock
	if machine.SinceBoot == nil {
		machine = machineClock()
	}
	found, err := prepare(db, machine, c.Codec)
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("file: %w", unusable(path, err))
	}
	return &Store{db: db, history: span, codec: c.Codec, writer: startWriter(db, file, found, span, c.Codec)}, nil
}

// Broken returns a channel that is closed once the store can no longer be used: a commit has
// failed, and what the disk holds is not known until the file is opened again.
func (s *Store) Broken() <-chan struct{} { return s.writer.broken }

// Close finishes the calls under way and closes the file.
func (s *Store) Close() error {
	if !s.writer.stop() {
		return nil // closed before
	}
	return s.db.Close()
}

// Update implements leadership.Store.
func (s *Store) Update(ctx context.Context, e leadership.Election, decide func(leadership.Snapshot) (leadership.Change, error)) (leadership.Snapshot, error) {
	var after leadership.Snapshot
	err := s.writer.do(ctx, func(t *transaction) error {
		snap, err := t.load(e)
		if err == nil {
			after, err = t.update(snap, decide)
		}
		return err
	})
	if err != nil {
		return leadership.Snapshot{}, err
	}
	return after, nil
}

// Renew implements leadership.Store.
func (s *Store) Renew(ctx context.Context, leases []leadership.Renewal) []leadership.Renewed {
	// The writer may still be at work when the caller has given up, so it works on a copy, and its
	// answers are only taken if it has finished.
	leases = slices.Clone(leases)
	renewed := make([]leadership.Renewed, len(leases))
	err := s.writer.do(ctx, func(t *transaction) error {
		for i, c := range leases {
			renewed[i] = t.renew(c)
		}
		return nil
	})
	if err != nil {
		return slices.Repeat([]leadership.Renewed{{Err: err}}, len(leases))
	}
	return renewed
}

func (t *transaction) renew(c leadership.Renewal) leadership.Renewed {
	snap, err := t.load(c.Election)
	if err != nil {
		return leadership.Renewed{Err: err}
	}
	var before time.Time
	snap, err = t.update(snap, func(snap leadership.Snapshot) (leadership.Change, error) {
		ch, err := leadership.Renew(snap, c)
		if err != nil {
			return ch, leadership.ErrNotRenewed
		}
		before = ch.Before
		return ch, nil
	})
	return leadership.Renewed{Snapshot: snap, Before: before, Err: err}
}

// MarkAnnounced implements leadership.Store.
func (s *Store) MarkAnnounced(ctx context.Context, ids []leadership.EventID) error {
	ids = slices.Clone(ids) // for the same reason
	return s.writer.do(ctx, func(t *transaction) error {
		for _, id := range ids {
			t.remove(outboxBucket, eventKey(id))
		}
		return nil
	})
}

// view runs a read. It sees everything that was committed before it, and nothing that is not
// durable.
func (s *Store) view(ctx context.Context, read func(*transaction) error) error {
	if err := s.writer.usable(ctx); err != nil {
		return err
	}
	var id int
	var answer error
	now := s.writer.moments.reading()
	err := undamaged(func() error {
		return s.db.View(func(tx *bbolt.Tx) error {
			id = tx.ID()
			t := &transaction{tx: tx, now: now, codec: s.codec}
			last, err := t.instant(metaBucket, nowKey)
			if err != nil {
				return err
			}
			if last.After(now) {
				t.now = last
			}
			answer = read(t)
			return nil
		})
	})
	switch {
	case errors.Is(err, berrors.ErrDatabaseNotOpen):
		return errClosed
	case err != nil:
		return unavailable(err)
	}
	if err := s.writer.await(ctx, id); err != nil {
		return err
	}
	return answer
}

// Get implements leadership.Store.
func (s *Store) Get(ctx context.Context, e leadership.Election) (snap leadership.Snapshot, err error) {
	err = s.view(ctx, func(t *transaction) error {
		snap, err = t.load(e)
		return err
	})
	return snap, err
}

// List implements leadership.Store.
func (s *Store) List(ctx context.Context, prefix string, after leadership.Election, limit int) (listing leadership.Listing, err error) {
	err = s.view(ctx, func(t *transaction) error {
		listing = t.list(prefix, after, limit)
		return nil
	})
	return listing, err
}

func (t *transaction) list(prefix string, after leadership.Election, limit int) leadership.Listing {
	var listing leadership.Listing
	var last leadership.Election
	name := t.nameFrom(max(prefix, string(after)))
	if after != "" && name == string(after) {
		name = t.nameAfter(name)
	}
	for n := 0; name != "" && strings.HasPrefix(name, prefix); n++ {
		if n == limit {
			listing.Next = last
			break
		}
		last = leadership.Election(name)
		snap, err := t.load(last)
		if err == nil && snap.Record.Revision == 0 {
			err = leadership.Corrupt(last, errors.New("its name stands where there is no record"))
		}
		listing.Add(last, snap, err)
		name = t.nameAfter(name)
	}
	return listing
}

// Held implements leadership.Store: it reads the heartbeats, which only elections with a leader
// have.
func (s *Store) Held(ctx context.Context, after leadership.Election, limit int) (listing leadership.Listing, err error) {
	err = s.view(ctx, func(t *transaction) error {
		listing = t.held(after, limit)
		return nil
	})
	return listing, err
}

func (t *transaction) held(after leadership.Election, limit int) leadership.Listing {
	var listing leadership.Listing
	var last leadership.Election
	c := t.tx.Bucket(heartbeatsBucket).Cursor()
	name, _ := c.Seek([]byte(after))
	if after != "" && string(name) == string(after) {
		name, _ = c.Next()
	}
	for n := 0; name != nil; n++ {
		if n == limit {
			listing.Next = last
			break
		}
		last = leadership.Election(name)
		snap, err := t.load(last)
		if err == nil && snap.Record.LeaderID == "" {
			err = leadership.Corrupt(last, errors.New("it has a heartbeat and no leader"))
		}
		listing.Add(last, snap, err)
		name, _ = c.Next()
	}
	return listing
}

// Retirable implements leadership.Store. The writer knows the answer.
func (s *Store) Retirable(ctx context.Context, at time.Time, limit int) ([]leadership.Election, error) {
	var due []leadership.Election
	err := s.writer.do(ctx, func(t *transaction) error {
		due = t.retire.By(at, limit)
		return nil
	})
	switch {
	case errors.Is(err, leadership.OutcomeUnknown): // as far as a read's can be
		return nil, s.writer.usable(ctx)
	case err != nil:
		return nil, err // the writer may still be at it
	}
	return due, nil
}

// nameAfter returns the next name of an election that has a record or, though that is damage, a
// history without one; "" if there is none.
func (t *transaction) nameAfter(name string) string { return t.nameFrom(name + "\x01") }

// nameFrom is nameAfter for the first name that is not before from.
func (t *transaction) nameFrom(from string) string {
	record, _ := t.tx.Bucket(recordsBucket).Cursor().Seek([]byte(from))
	key, _ := t.tx.Bucket(eventsBucket).Cursor().Seek([]byte(from))
	witness, _, _ := bytes.Cut(key, []byte{0})
	if record == nil || len(witness) > 0 && bytes.Compare(witness, record) < 0 {
		return string(witness)
	}
	return string(record)
}
