package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// tag is the kind of an entry of a frame; see the package comment.
type tag = byte

const (
	tagRecord tag = iota + 1
	tagHeartbeat
	tagEvent
	tagAnnounced
	tagWaiting
	tagForgotten
	tagBoot
	tagPruned
	tagPage
	tagEnd
	tagLog
	tagSegment
	tagTrimmed
)

func appendText[T ~string](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendInstant appends an instant exactly, even the zero one.
func appendInstant(b []byte, t time.Time) []byte {
	return binary.AppendUvarint(binary.AppendVarint(b, t.Unix()), uint64(t.Nanosecond()))
}

// appendElection begins an entry.
func appendElection(b []byte, t tag, e leadership.Election) []byte {
	return appendText(append(b, t), e)
}

// appendRevision appends an entry of an election and a revision.
func appendRevision(b []byte, t tag, e leadership.Election, r leadership.Revision) []byte {
	return binary.AppendVarint(appendElection(b, t, e), int64(r))
}

func appendHeartbeat(b []byte, e leadership.Election, at time.Time) []byte {
	return appendInstant(appendElection(b, tagHeartbeat, e), at)
}

// Bits of a record.
const (
	isDeleted = 1 << iota
	hasKey
)

func appendRecord(b []byte, r *rule.Record, carried rule.Carried) []byte {
	b = appendElection(b, tagRecord, r.Election)
	var bits byte
	if r.Deleted {
		bits |= isDeleted
	}
	if r.KeyHash != (leadership.KeyHash{}) {
		bits |= hasKey
	}
	b = append(b, bits)
	for _, n := range [...]int64{int64(carried.Needs), int64(r.Token), int64(r.Revision), int64(r.LeaseDuration), int64(r.LockFor)} {
		b = binary.AppendVarint(b, n)
	}
	for _, t := range [...]time.Time{r.AcquiredAt, r.HeartbeatAt, r.EndsBy, r.EndedAt} {
		b = appendInstant(b, t)
	}
	for _, s := range [...]string{string(r.LeaderID), string(r.EndsBecause), string(r.Metadata), carried.Policy, carried.Standing} {
		b = appendText(b, s)
	}
	if bits&hasKey != 0 {
		b = append(b, r.KeyHash[:]...)
	}
	return b
}

// record decodes what appendRecord wrote after the tag. The codec decodes policy and standing
// later.
func (d *decoder) record(e leadership.Election) (r rule.Record, carried rule.Carried) {
	bits := d.byte()
	if bits&^(isDeleted|hasKey) != 0 {
		d.fail("a record has unknown bits")
	}
	r.Election, r.Deleted = e, bits&isDeleted != 0
	carried.Needs = rule.Version(d.varint())
	r.Token = leadership.Token(d.varint())
	r.Revision = leadership.Revision(d.varint())
	r.LeaseDuration, r.LockFor = time.Duration(d.varint()), time.Duration(d.varint())
	r.AcquiredAt, r.HeartbeatAt, r.EndsBy, r.EndedAt = d.instant(), d.instant(), d.instant(), d.instant()
	r.LeaderID = leadership.CandidateID(d.text())
	r.EndsBecause = leadership.EndReason(d.text())
	r.Metadata = leadership.Metadata(d.text())
	carried.Policy, carried.Standing = string(d.text()), string(d.text())
	if bits&hasKey != 0 {
		copy(r.KeyHash[:], d.take(len(r.KeyHash)))
		if r.KeyHash == (leadership.KeyHash{}) {
			d.fail("a key is zero")
		}
	}
	return r, carried
}

// appendEvent appends an event without a tag. The fields of eventHead come first.
func appendEvent(b []byte, e *leadership.Event) []byte {
	b = appendText(b, e.Election)
	b = binary.AppendVarint(b, int64(e.Revision))
	b = binary.AppendVarint(b, int64(e.Token))
	b = appendInstant(b, e.At)
	for _, s := range [...]string{string(e.Type), string(e.LeaderID), string(e.PreviousLeaderID), e.RequestID, e.Actor, e.Reason, e.Detail} {
		b = appendText(b, s)
	}
	return b
}

// eventHead decodes the first part of an event.
func (d *decoder) eventHead() (e []byte, r leadership.Revision, t leadership.Token, at time.Time) {
	return d.text(), leadership.Revision(d.varint()), leadership.Token(d.varint()), d.instant()
}

// skipEvent skips the rest of an event.
func (d *decoder) skipEvent() {
	for range 7 {
		d.text()
	}
}

// decodeEvent is the inverse of appendEvent.
func decodeEvent(b []byte) (e leadership.Event, err error) {
	d := decoder{rest: b}
	name, r, t, at := d.eventHead()
	e = leadership.Event{Election: leadership.Election(name), Revision: r, Token: t, At: at}
	e.Type = leadership.EventType(d.text())
	e.LeaderID, e.PreviousLeaderID = leadership.CandidateID(d.text()), leadership.CandidateID(d.text())
	e.RequestID, e.Actor, e.Reason, e.Detail = string(d.text()), string(d.text()), string(d.text()), string(d.text())
	if len(d.rest) > 0 {
		d.fail("something follows an event")
	}
	return e, d.err
}

// writable returns an error if the event's texts could fill a sector with zeros. No part of a
// record can, nor can the other texts of an event, which are shorter or have no zero bytes.
func writable(e *leadership.Event) error {
	zeros := strings.Repeat("\x00", 64)
	for _, s := range [...]string{string(e.Type), e.RequestID, e.Actor} {
		if strings.Contains(s, zeros) {
			return fmt.Errorf("file: event %d of %q: one of its texts has too many zero bytes", e.Revision, e.Election)
		}
	}
	return nil
}

// decoder reads a payload. After the first error everything that it reads is zero.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) fail(why string) { d.check(errors.New(why)) }

// check keeps the first error, which ends the decoding.
func (d *decoder) check(err error) {
	if err != nil && d.err == nil {
		d.err, d.rest = err, nil
	}
}

func (d *decoder) take(n int) []byte {
	if n > len(d.rest) {
		d.fail("it ends within a field")
		return nil
	}
	taken := d.rest[:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

// uvarint accepts only the shortest form of a number.
func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || n > 1 && d.rest[n-1] == 0 {
		d.fail("a number cannot be read")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) varint() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// text returns a part of the payload, which the caller must copy.
func (d *decoder) text() []byte {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.fail("a text goes beyond the end")
		return nil
	}
	return d.take(int(n))
}

func (d *decoder) instant() time.Time {
	s, ns := d.varint(), d.uvarint()
	if ns >= uint64(time.Second) {
		d.fail("an instant has too many nanoseconds")
		return time.Time{}
	}
	if d.err != nil {
		return time.Time{}
	}
	return time.Unix(s, int64(ns)).UTC()
}

// same gives every instant of a record the form that decoding gives it, because records are
// compared with ==.
func same(r *rule.Record) {
	for _, t := range [...]*time.Time{&r.AcquiredAt, &r.HeartbeatAt, &r.EndsBy, &r.EndedAt} {
		*t = t.Round(0).UTC()
	}
}
