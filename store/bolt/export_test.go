package bolt

import (
	"context"

	"regent/leadership"
)

// Spoil changes stored values behind the store's back: the record's JSON and the heartbeat's instant, each sealed again. A nil value is
// removed.
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

// FlipBit changes a record's stored bytes, as a failing disk would.
func (s *Store) FlipBit(e leadership.Election) error {
	return s.writer.do(context.Background(), func(t *transaction) error {
		key := []byte(e)
		sealed := append([]byte(nil), t.tx.Bucket(recordsBucket).Get(key)...)
		sealed[len(sealed)/2] ^= 1
		t.dirty = true
		delete(t.cache, e)
		return t.tx.Bucket(recordsBucket).Put(key, sealed)
	})
}

// Unsync makes the store believe that its newest transaction is still being synced, until the returned function is called.
func (s *Store) Unsync() (synced func()) {
	h := &s.writer.durable
	h.mu.Lock()
	defer h.mu.Unlock()
	last := h.last
	h.last--
	return func() { h.move(last) }
}

// Synced says whether commits are synced at all.
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

// Fail makes every later commit fail.
func (s *Store) Fail() error { return s.db.Close() }

var (
	DecodeRecord   = decodeRecord
	EncodeRecord   = encodeRecord
	DecodeEvent    = decodeEvent
	EncodeEvent    = encodeEvent
	DecodeEventKey = decodeEventKey
	EventKey       = eventKey
	Seal           = seal
	Unseal         = unseal
	CheckPages     = checkPages
)
