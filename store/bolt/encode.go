package bolt

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"regent/leadership"
)

// schema is the version of records and events, and is in each; the file has one of its own. A new field means a new schema, and a decoder that still reads the old one:
// there is no such thing as an optional field, because a record that lost one must be noticed.
const schema = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal puts a checksum over key and value in front of the value.
func seal(key, value []byte) []byte {
	sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(value)), sum), value...)
}

// unseal checks what seal made and returns the value.
func unseal(key, sealed []byte) ([]byte, error) {
	if len(sealed) < 4 {
		return nil, errors.New("its checksum is missing")
	}
	value := sealed[4:]
	if crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value) != binary.BigEndian.Uint32(sealed) {
		return nil, errors.New("its checksum is wrong")
	}
	return value, nil
}

// record is the persisted form of a leadership.Record without its heartbeat.
type record struct {
	Schema              int             `json:"schema"`
	FencingToken        int64           `json:"fencingToken"`
	Revision            int64           `json:"revision"`
	ConfigLeaseDuration int64           `json:"configLeaseDurationMs"`
	ConfigLockDelay     int64           `json:"configLockDelayMs"`
	Deleted             bool            `json:"deleted"`
	LeaderID            string          `json:"leaderId"`
	KeyHash             string          `json:"keyHash"` // base64url; "" without a leader
	LeaseDuration       int64           `json:"leaseDurationMs"`
	AcquiredAt          time.Time       `json:"acquiredAt"`
	Metadata            json.RawMessage `json:"metadata"` // null without any
	EndedAt             time.Time       `json:"endedAt"`
	LockFor             int64           `json:"lockForNs"`
}

func encodeRecord(r leadership.Record) ([]byte, error) {
	p := record{
		Schema:              schema,
		FencingToken:        int64(r.Token),
		Revision:            int64(r.Revision),
		ConfigLeaseDuration: r.Config.LeaseDuration.Milliseconds(),
		ConfigLockDelay:     r.Config.LockDelay.Milliseconds(),
		Deleted:             r.Deleted,
		LeaderID:            string(r.LeaderID),
		LeaseDuration:       r.LeaseDuration.Milliseconds(),
		AcquiredAt:          r.AcquiredAt,
		Metadata:            json.RawMessage(r.Metadata),
		EndedAt:             r.EndedAt,
		LockFor:             int64(r.LockFor),
	}
	if r.LeaderID != "" {
		p.KeyHash = base64.RawURLEncoding.EncodeToString(r.KeyHash[:])
	}
	if r.Metadata == "" {
		p.Metadata = json.RawMessage("null")
	}
	return marshal(p)
}

// decodeRecord is the inverse of encodeRecord. It takes only what encodeRecord would have written.
func decodeRecord(e leadership.Election, value []byte) (leadership.Record, error) {
	var p record
	if err := unmarshal(value, &p, func() int { return p.Schema }); err != nil {
		return leadership.Record{}, err
	}
	r := leadership.Record{
		Election: e,
		Token:    leadership.Token(p.FencingToken),
		Revision: leadership.Revision(p.Revision),
		Config: leadership.Config{
			LeaseDuration: time.Duration(p.ConfigLeaseDuration) * time.Millisecond,
			LockDelay:     time.Duration(p.ConfigLockDelay) * time.Millisecond,
		},
		Deleted:       p.Deleted,
		LeaderID:      leadership.CandidateID(p.LeaderID),
		LeaseDuration: time.Duration(p.LeaseDuration) * time.Millisecond,
		AcquiredAt:    p.AcquiredAt,
		EndedAt:       p.EndedAt,
		LockFor:       time.Duration(p.LockFor),
	}
	if string(p.Metadata) != "null" {
		r.Metadata = leadership.Metadata(p.Metadata)
	}
	if p.LeaderID != "" {
		hash, err := base64.RawURLEncoding.DecodeString(p.KeyHash)
		if err != nil || len(hash) != len(r.KeyHash) {
			return leadership.Record{}, errors.New("its key hash cannot be read")
		}
		r.KeyHash = leadership.KeyHash(hash)
	}
	return r, same(value, func() ([]byte, error) { return encodeRecord(r) })
}

// event is the persisted form of a leadership.Event; the key has the rest.
type event struct {
	Schema           int       `json:"schema"`
	Type             string    `json:"type"`
	At               time.Time `json:"at"`
	LeaderID         string    `json:"leaderId"`
	PreviousLeaderID string    `json:"previousLeaderId"`
	FencingToken     int64     `json:"fencingToken"`
	RequestID        string    `json:"requestId"`
}

func encodeEvent(e leadership.Event) ([]byte, error) {
	return marshal(event{
		Schema:           schema,
		Type:             string(e.Type),
		At:               e.At,
		LeaderID:         string(e.LeaderID),
		PreviousLeaderID: string(e.PreviousLeaderID),
		FencingToken:     int64(e.Token),
		RequestID:        e.RequestID,
	})
}

func decodeEvent(id leadership.EventID, value []byte) (leadership.Event, error) {
	var p event
	if err := unmarshal(value, &p, func() int { return p.Schema }); err != nil {
		return leadership.Event{}, err
	}
	e := leadership.Event{
		Election:         id.Election,
		Revision:         id.Revision,
		Type:             leadership.EventType(p.Type),
		At:               p.At,
		LeaderID:         leadership.CandidateID(p.LeaderID),
		PreviousLeaderID: leadership.CandidateID(p.PreviousLeaderID),
		Token:            leadership.Token(p.FencingToken),
		RequestID:        p.RequestID,
	}
	return e, same(value, func() ([]byte, error) { return encodeEvent(e) })
}

// encodeInstant is the persisted form of a heartbeat and of the times in meta: nanoseconds since 1970, 8 bytes.
func encodeInstant(t time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(t.UnixNano()))
}

func decodeInstant(value []byte) (time.Time, error) {
	if len(value) != 8 {
		return time.Time{}, fmt.Errorf("an instant has 8 bytes, not %d", len(value))
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(value))).UTC(), nil
}

// eventKey sorts the events of an election together, and by revision.
func eventKey(id leadership.EventID) []byte {
	return binary.BigEndian.AppendUint64(eventPrefix(id.Election), uint64(id.Revision))
}

// eventPrefix begins the keys of an election's events and of no other's: no name has a zero byte in it.
func eventPrefix(e leadership.Election) []byte { return append([]byte(e), 0) }

func decodeEventKey(key []byte) (leadership.EventID, error) {
	n := len(key) - 9
	if n < 1 || key[n] != 0 {
		return leadership.EventID{}, errors.New("an event's key cannot be read")
	}
	return leadership.EventID{
		Election: leadership.Election(key[:n]),
		Revision: leadership.Revision(binary.BigEndian.Uint64(key[n+1:])),
	}, nil
}

// timeKey sorts events by their time and, those of one time, by their keys.
func timeKey(at time.Time, eventKey []byte) []byte { return append(encodeInstant(at), eventKey...) }

func decodeTimeKey(key []byte) (at time.Time, eventKey []byte, err error) {
	if len(key) < 8 {
		return time.Time{}, nil, errors.New("an event's place among the times cannot be read")
	}
	at, err = decodeInstant(key[:8])
	return at, key[8:], err
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func unmarshal(value []byte, into any, version func() int) error {
	if err := json.Unmarshal(value, into); err != nil {
		return fmt.Errorf("it cannot be read: %w", err)
	}
	if v := version(); v != schema {
		return fmt.Errorf("its schema is %d, and this program knows %d", v, schema)
	}
	return nil
}

// same says that a value is exactly what would be written today: no field is missing, doubled, unknown or spelt otherwise.
func same(value []byte, encode func() ([]byte, error)) error {
	again, err := encode()
	if err != nil {
		return fmt.Errorf("it cannot be written again: %w", err)
	}
	if !bytes.Equal(value, again) {
		return errors.New("it is not what was written: a field is missing or unknown")
	}
	return nil
}
