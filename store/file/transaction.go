package file

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"regent/leadership"
	"regent/store/internal/history"
	"regent/store/internal/retirement"
)

// transaction is the file at one moment of the store's time. Its cache, if it has one, holds
// records that were loaded before; there is no other writer, so they are current.
type transaction struct {
	tx      *bbolt.Tx
	now     time.Time
	history history.Span // for a change
	codec   leadership.Codec
	cache   map[leadership.Election]leadership.Record
	retire  retirement.Plan // nil for a read
	digest  digest          // of all that the file holds; for a change
	dirty   bool
	// err is the first write that did not work. A transaction with one must not be committed.
	err error
	// panicked is what the decision of the present job panicked with.
	panicked any
}

// decide runs a caller's decision. A panic becomes an error and is kept for that caller alone.
func (t *transaction) decide(snap leadership.Snapshot, decide func(leadership.Snapshot) (leadership.Change, error)) (ch leadership.Change, err error) {
	defer func() {
		if t.panicked = recover(); t.panicked != nil {
			err = errors.New("file: the decision panicked")
		}
	}()
	return decide(snap)
}

// load reads an election and verifies it.
func (t *transaction) load(e leadership.Election) (leadership.Snapshot, error) {
	snap := leadership.Snapshot{Record: leadership.Record{Election: e}, Now: t.now}
	if r, ok := t.cache[e]; ok {
		snap.Record = r
		return snap, nil
	}
	k, err := t.read(e)
	if err != nil {
		return snap, err
	}
	snap.Record = k.record
	if k.carried.Needs > 0 { // else there is no record
		if err := t.codec.Decode(&snap.Record, k.carried); err != nil {
			return snap, err
		}
	}
	if err := leadership.Verify(snap, k.newest); err != nil {
		return snap, err
	}
	if t.cache != nil && snap.Record.Revision > 0 {
		t.cache[e] = snap.Record
	}
	return snap, nil
}

// kept is an election as it is in the file: Policy and Standing only as their text.
type kept struct {
	record  leadership.Record
	carried leadership.Carried
	newest  leadership.Newest
}

// read reads an election, which need not have a record. The error has the code RecordCorrupt.
func (t *transaction) read(e leadership.Election) (k kept, err error) {
	defer func() {
		if err != nil {
			err = leadership.Corrupt(e, err)
		}
	}()
	k.record.Election = e
	if k.newest, err = t.newest(e); err != nil {
		return k, err
	}
	value, err := t.get(recordsBucket, []byte(e))
	if err != nil || value == nil {
		return k, err
	}
	if k.record, k.carried, err = decodeRecord(e, value); err != nil {
		return k, err
	}
	if k.carried.Needs < 1 {
		return k, errors.New("it does not say which version of the program it needs")
	}
	if k.record.LeaderID != "" {
		k.record.HeartbeatAt, err = t.instant(heartbeatsBucket, []byte(e))
	}
	return k, err
}

// get reads a value and checks it; nil if there is none.
func (t *transaction) get(bucket, key []byte) ([]byte, error) {
	sealed := t.tx.Bucket(bucket).Get(key)
	if sealed == nil {
		return nil, nil
	}
	return unseal(key, sealed)
}

// instant reads a time; zero if there is none.
func (t *transaction) instant(bucket, key []byte) (time.Time, error) {
	value, err := t.get(bucket, key)
	if err != nil || value == nil {
		return time.Time{}, err
	}
	return decodeInstant(value)
}

// newest reads the last event of an election: the one before the first key behind all its events.
func (t *transaction) newest(e leadership.Election) (leadership.Newest, error) {
	prefix := eventPrefix(e)
	c := t.tx.Bucket(eventsBucket).Cursor()
	var key, sealed []byte
	if behind, _ := c.Seek(append([]byte(e), 1)); behind != nil {
		key, sealed = c.Prev()
	} else {
		key, sealed = c.Last()
	}
	if !bytes.HasPrefix(key, prefix) {
		return leadership.Newest{}, nil
	}
	event, err := readEvent(key, sealed)
	return leadership.Newest{Revision: event.Revision, Token: event.Token}, err
}

// update decides on the record that it reads, and writes the change. If it returns an error it has
// written nothing.
func (t *transaction) update(
	snap leadership.Snapshot, decide func(leadership.Snapshot) (leadership.Change, error),
) (leadership.Snapshot, error) {
	ch, carried, err := t.codec.Decide(snap, func(s leadership.Snapshot) (leadership.Change, error) { return t.decide(s, decide) })
	if err != nil || ch.Empty() {
		return snap, err
	}
	before := snap.Record
	snap.Record = ch.Committed(t.now)
	before.HeartbeatAt = snap.Record.HeartbeatAt
	if snap.Record == before && len(ch.Events) == 0 {
		t.putHeartbeat(before) // a plain renewal changes nothing else
	} else if err := t.putChange(snap.Record, carried, ch.Events); err != nil {
		return snap, err
	}
	if t.cache != nil {
		t.cache[before.Election] = snap.Record
	}
	if t.retire != nil {
		t.retire.Set(snap.Record)
	}
	return snap, nil
}

func (t *transaction) putChange(r leadership.Record, carried leadership.Carried, events []leadership.Event) error {
	value, err := encodeRecord(r, carried)
	if err != nil {
		return fmt.Errorf("file: record of %q: %w", r.Election, err)
	}
	encoded := make([][]byte, len(events))
	for i, e := range events {
		e.At = t.now
		if encoded[i], err = encodeEvent(e); err != nil {
			return fmt.Errorf("file: event %d of %q: %w", e.Revision, e.Election, err)
		}
	}
	t.put(recordsBucket, []byte(r.Election), value)
	t.putHeartbeat(r)
	for i, e := range events {
		key := eventKey(e.ID())
		t.put(eventsBucket, key, encoded[i])
		t.put(outboxBucket, key, nil)
		t.put(timesBucket, timeKey(t.now, key), nil)
	}
	if len(events) > 0 {
		t.prune(r.Election)
	}
	return nil
}

func (t *transaction) putHeartbeat(r leadership.Record) {
	key := []byte(r.Election)
	if r.LeaderID == "" {
		t.remove(heartbeatsBucket, key)
		return
	}
	t.put(heartbeatsBucket, key, encodeInstant(r.HeartbeatAt))
}

func (t *transaction) put(bucket, key, value []byte) {
	t.dirty = true
	b, sealed := t.tx.Bucket(bucket), seal(key, value)
	t.digest.drop(bucket, key, b.Get(key))
	t.digest.add(bucket, key, sealed)
	t.err = cmp.Or(t.err, b.Put(key, sealed))
}

func (t *transaction) remove(bucket, key []byte) {
	t.dirty = true
	b := t.tx.Bucket(bucket)
	t.digest.drop(bucket, key, b.Get(key))
	t.err = cmp.Or(t.err, b.Delete(key))
}
