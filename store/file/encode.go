package file

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"regent/leadership"
)

// schema is the version of records and events, and is stored in each; the file has one of its own.
// A new field means a new schema, and a decoder that still reads the one before: no field is
// optional, because a record that lost one must be noticed.
const (
	schema       = 2
	schemaBefore = 1
)

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
	Schema        int             `json:"schema"`
	Needs         int64           `json:"needs"`
	FencingToken  int64           `json:"fencingToken"`
	Revision      int64           `json:"revision"`
	Deleted       bool            `json:"deleted"`
	LeaderID      string          `json:"leaderId"`
	KeyHash       string          `json:"keyHash"` // base64url; "" without a leader
	LeaseDuration int64           `json:"leaseDurationMs"`
	AcquiredAt    time.Time       `json:"acquiredAt"`
	EndsBy        time.Time       `json:"endsBy"`
	EndsBecause   string          `json:"endsBecause"`
	Metadata      json.RawMessage `json:"metadata"` // null without any
	EndedAt       time.Time       `json:"endedAt"`
	LockFor       int64           `json:"lockForNs"`
	Policy        string          `json:"policy"`   // as leadership.Codec has it
	Standing      string          `json:"standing"` // so, too
}

// recordBefore is the form of records in the schema before.
type recordBefore struct {
	Schema              int             `json:"schema"`
	FencingToken        int64           `json:"fencingToken"`
	Revision            int64           `json:"revision"`
	ConfigLeaseDuration int64           `json:"configLeaseDurationMs"`
	ConfigLockDelay     int64           `json:"configLockDelayMs"`
	Deleted             bool            `json:"deleted"`
	LeaderID            string          `json:"leaderId"`
	KeyHash             string          `json:"keyHash"`
	LeaseDuration       int64           `json:"leaseDurationMs"`
	AcquiredAt          time.Time       `json:"acquiredAt"`
	Metadata            json.RawMessage `json:"metadata"`
	EndedAt             time.Time       `json:"endedAt"`
	LockFor             int64           `json:"lockForNs"`
}

func encodeRecord(r leadership.Record, carried leadership.Carried) ([]byte, error) {
	p := record{
		Schema:        schema,
		Needs:         int64(carried.Needs),
		FencingToken:  int64(r.Token),
		Revision:      int64(r.Revision),
		Deleted:       r.Deleted,
		LeaderID:      string(r.LeaderID),
		LeaseDuration: r.LeaseDuration.Milliseconds(),
		AcquiredAt:    r.AcquiredAt,
		EndsBy:        r.EndsBy,
		EndsBecause:   string(r.EndsBecause),
		Metadata:      json.RawMessage(cmp.Or(r.Metadata, "null")),
		EndedAt:       r.EndedAt,
		LockFor:       int64(r.LockFor),
		Policy:        carried.Policy,
		Standing:      carried.Standing,
	}
	if r.LeaderID != "" {
		p.KeyHash = base64.RawURLEncoding.EncodeToString(r.KeyHash[:])
	}
	return marshal(p)
}

// decodeRecord is the inverse of encodeRecord, and reads the schema before. The record is without
// its policy and standing, which are for the codec to decode.
func decodeRecord(e leadership.Election, value []byte) (leadership.Record, leadership.Carried, error) {
	var p record
	v, err := schemaOf(value)
	switch {
	case err == nil && v == schemaBefore:
		p, err = decodeBefore(e, value)
	case err == nil:
		err = json.Unmarshal(value, &p)
	}
	if err != nil {
		return leadership.Record{}, leadership.Carried{}, err
	}
	r := leadership.Record{
		Election:      e,
		Token:         leadership.Token(p.FencingToken),
		Revision:      leadership.Revision(p.Revision),
		Deleted:       p.Deleted,
		LeaderID:      leadership.CandidateID(p.LeaderID),
		LeaseDuration: time.Duration(p.LeaseDuration) * time.Millisecond,
		AcquiredAt:    p.AcquiredAt,
		EndsBy:        p.EndsBy,
		EndsBecause:   leadership.EndReason(p.EndsBecause),
		EndedAt:       p.EndedAt,
		LockFor:       time.Duration(p.LockFor),
	}
	if string(p.Metadata) != "null" {
		r.Metadata = leadership.Metadata(p.Metadata)
	}
	hash, err := base64.RawURLEncoding.DecodeString(p.KeyHash)
	if err != nil || len(hash) != 0 && len(hash) != len(r.KeyHash) {
		return leadership.Record{}, leadership.Carried{}, errors.New("its key hash cannot be decoded")
	}
	copy(r.KeyHash[:], hash)
	carried := leadership.Carried{Policy: p.Policy, Standing: p.Standing, Needs: leadership.Version(p.Needs)}
	if again, err := encodeRecord(r, carried); v == schema && (err != nil || !bytes.Equal(value, again)) {
		return leadership.Record{}, leadership.Carried{}, errNotWritten
	}
	return r, carried, nil
}

// decodeBefore decodes a record of the schema before.
func decodeBefore(e leadership.Election, value []byte) (record, error) {
	var p recordBefore
	if err := decode(value, &p); err != nil {
		return record{}, err
	}
	carried, err := leadership.Codec{}.Encode(&leadership.Record{Election: e, Policy: leadership.Policy{Config: leadership.Config{
		LeaseDuration: time.Duration(p.ConfigLeaseDuration) * time.Millisecond,
		LockDelay:     time.Duration(p.ConfigLockDelay) * time.Millisecond,
	}}})
	return record{
		Needs:         int64(carried.Needs),
		FencingToken:  p.FencingToken,
		Revision:      p.Revision,
		Deleted:       p.Deleted,
		LeaderID:      p.LeaderID,
		KeyHash:       p.KeyHash,
		LeaseDuration: p.LeaseDuration,
		AcquiredAt:    p.AcquiredAt,
		Metadata:      p.Metadata,
		EndedAt:       p.EndedAt,
		LockFor:       p.LockFor,
		Policy:        carried.Policy,
	}, err
}

// event is the persisted form of a leadership.Event; the key has the rest.
type event struct {
	eventBefore
	Actor  string `json:"actor"`
	Reason string `json:"reason"`
	Detail string `json:"detail"`
}

// eventBefore is the form of events in the schema before.
type eventBefore struct {
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
		eventBefore: eventBefore{
			Schema:           schema,
			Type:             string(e.Type),
			At:               e.At,
			LeaderID:         string(e.LeaderID),
			PreviousLeaderID: string(e.PreviousLeaderID),
			FencingToken:     int64(e.Token),
			RequestID:        e.RequestID,
		},
		Actor:  e.Actor,
		Reason: e.Reason,
		Detail: e.Detail,
	})
}

func decodeEvent(id leadership.EventID, value []byte) (leadership.Event, error) {
	var p event
	v, err := schemaOf(value)
	switch {
	case err == nil && v == schemaBefore:
		err = decode(value, &p.eventBefore)
	case err == nil:
		err = decode(value, &p)
	}
	if err != nil {
		return leadership.Event{}, err
	}
	return leadership.Event{
		Election:         id.Election,
		Revision:         id.Revision,
		Type:             leadership.EventType(p.Type),
		At:               p.At,
		LeaderID:         leadership.CandidateID(p.LeaderID),
		PreviousLeaderID: leadership.CandidateID(p.PreviousLeaderID),
		Token:            leadership.Token(p.FencingToken),
		RequestID:        p.RequestID,
		Actor:            p.Actor,
		Reason:           p.Reason,
		Detail:           p.Detail,
	}, nil
}

// encodeInstant is the persisted form of a heartbeat and of the times in meta: nanoseconds since
// 1970, 8 bytes.
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

// eventPrefix is the prefix of the keys of an election's events, and of no other election's: no
// name has a zero byte in it.
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

// schemaOf returns the schema of a record or an event, one that this program reads.
func schemaOf(value []byte) (int, error) {
	var p struct{ Schema int }
	if err := json.Unmarshal(value, &p); err != nil {
		return 0, fmt.Errorf("it cannot be decoded: %w", err)
	}
	if p.Schema != schema && p.Schema != schemaBefore {
		return 0, fmt.Errorf("its schema is %d, and this program reads %d and %d", p.Schema, schemaBefore, schema)
	}
	return p.Schema, nil
}

var errNotWritten = errors.New("it is not what was written: a field is missing or unknown")

// decode reads only texts that marshal makes of a value of that type: no field is missing, doubled,
// unknown or spelt otherwise.
func decode[T any](value []byte, into *T) error {
	if err := json.Unmarshal(value, into); err != nil {
		return fmt.Errorf("it cannot be decoded: %w", err)
	}
	again, err := marshal(into)
	if err != nil {
		return fmt.Errorf("it cannot be encoded again: %w", err)
	}
	if !bytes.Equal(value, again) {
		return errNotWritten
	}
	return nil
}
