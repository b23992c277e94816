package file

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"regent/leadership"
)

// Spoil changes stored values behind the store's back: the record's JSON and the heartbeat's
// instant, each sealed again. A nil value is removed.
func (s *Store) Spoil(e leadership.Election, change func(record, heartbeat []byte) (newRecord, newHeartbeat []byte)) error {
	return s.writer.do(context.Background(), func(t *transaction) error {
		key := []byte(e)
		record, err := t.get(recordsBucket, key)
		if err != nil {
			return err
		}
		heartbeat, err := t.get(heartbeatsBucket, key)
		if err != nil {
			return err
		}
		record, heartbeat = change(record, heartbeat)
		t.replace(recordsBucket, key, record)
		t.replace(heartbeatsBucket, key, heartbeat)
		delete(t.cache, e)
		return nil
	})
}

func (t *transaction) replace(bucket, key, value []byte) {
	if value == nil {
		t.remove(bucket, key)
		return
	}
	t.put(bucket, key, value)
}

// Rewrite replaces a record and its first event, and the layout of the file.
func (s *Store) Rewrite(e leadership.Election, record, event, layout string) error {
	return s.writer.do(context.Background(), func(t *transaction) error {
		t.put(recordsBucket, []byte(e), []byte(record))
		t.put(eventsBucket, eventKey(leadership.EventID{Election: e, Revision: 1}), []byte(event))
		t.put(metaBucket, schemaKey, []byte(layout))
		return t.err
	})
}

// FlipBit changes a record's stored bytes at the first place of the text, as a failing disk would.
func (s *Store) FlipBit(e leadership.Election, text string) error {
	return s.writer.do(context.Background(), func(t *transaction) error {
		key := []byte(e)
		sealed := bytes.Clone(t.tx.Bucket(recordsBucket).Get(key))
		at := bytes.Index(sealed, []byte(text))
		if at < 0 {
			return fmt.Errorf("there is no %q in %q", text, sealed)
		}
		sealed[at] ^= 1
		t.dirty = true
		delete(t.cache, e)
		return t.tx.Bucket(recordsBucket).Put(key, sealed)
	})
}

// Unsync makes the store believe that its newest transaction is still being synced, until the
// returned function is called.
func (s *Store) Unsync() (synced func()) {
	h := &s.writer.durable
	h.mu.Lock()
	defer h.mu.Unlock()
	last := h.last
	h.last--
	return func() { h.move(last) }
}

// Synced reports whether commits are synced at all.
func (s *Store) Synced() bool { return !s.db.NoSync && !s.db.NoGrowSync }

// Hold keeps the writer busy until the returned function is called.
func (s *Store) Hold() (release func()) {
	held, released := make(chan struct{}), make(chan struct{})
	go s.writer.do(context.Background(), func(*transaction) error {
		close(held)
		<-released
		return nil
	})
	<-held
	return func() { close(released) }
}

// SpoilEvent damages a stored event.
func (s *Store) SpoilEvent(id leadership.EventID) error {
	return s.writer.do(context.Background(), func(t *transaction) error {
		t.dirty = true
		return t.tx.Bucket(eventsBucket).Put(eventKey(id), []byte("damaged"))
	})
}

// SpoilTime damages an event's place among the times: its value or, with moved, its instant.
func (s *Store) SpoilTime(e leadership.Event, moved bool) error {
	return s.writer.do(context.Background(), func(t *transaction) error {
		key := eventKey(e.ID())
		place := timeKey(e.At, key)
		if moved {
			t.remove(timesBucket, place)
			t.put(timesBucket, timeKey(e.At.Add(1), key), nil)
			return nil
		}
		t.dirty = true
		return t.tx.Bucket(timesBucket).Put(place, []byte("damaged"))
	})
}

// Between reads what was committed after the instant and not after the other.
func (s *Store) Between(after, last time.Time) (events []leadership.Event, err error) {
	err = s.view(context.Background(), func(t *transaction) error {
		events, err = t.between(after, last, 100)
		return err
	})
	return events, err
}

// Queued is how many calls wait for the writer.
func (s *Store) Queued() int { return len(s.writer.jobs) }

// Keys counts the keys of a bucket.
func (s *Store) Keys(bucket string) (n int, err error) {
	err = s.view(context.Background(), func(t *transaction) error {
		n = t.tx.Bucket([]byte(bucket)).Stats().KeyN
		return nil
	})
	return n, err
}

// RemoveBucket removes a bucket, for good.
func (s *Store) RemoveBucket(name string) error {
	return s.db.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(name)) })
}

// Meddle changes the file behind the store's back.
func (s *Store) Meddle(change func(*bbolt.Tx) error) error {
	return s.writer.do(context.Background(), func(t *transaction) error {
		t.dirty = true
		return change(t.tx)
	})
}

// MaxPruned is how many events go with one change.
const MaxPruned = maxPruned

// Fail makes every later commit fail.
func (s *Store) Fail() error { return s.db.Close() }

var (
	DecodeRecord   = decodeRecord
	EncodeRecord   = encodeRecord
	DecodeEvent    = decodeEvent
	EncodeEvent    = encodeEvent
	DecodeEventKey = decodeEventKey
	EventKey       = eventKey
	DecodeTimeKey  = decodeTimeKey
	TimeKey        = timeKey
	Seal           = seal
	Unseal         = unseal
	CheckPages     = checkPages
	CheckOwner     = checkOwner
)
