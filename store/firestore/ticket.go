package firestore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/proto"

	"regent/leadership"
	"regent/leadership/rule"
)

// A ticket is a sealed lease document: with it any handle can send the next heartbeat without a
// read, which otherwise only the handle that sent the last one can. It has the values of the
// document's fields in the order of ticketFields, after these:
const (
	ticketElection = iota
	ticketUpdated  // update_time of the document, the guard of the next write
	ticketDigest   // of the large fields, if they did not fit and were left out; otherwise null
	ticketPrefix   // the number of these values
)

// ticketFields are all fields of a lease document.
func ticketFields() []string {
	return []string{
		schemaField, needsField, tokenField, revisionField, deletedField, leaderField, keyHashField, leaseField,
		acquiredField, endsByField, endsBecauseField, metadataField, heartbeatsField, endedField, lockForField,
		policyField, standingField, renewedField, dueField,
	}
}

// largeFields are the fields that may be too large for a ticket. Except for the leader's reports
// they seldom change, so a handle that has read the lease once remembers them.
func largeFields() []string { return []string{metadataField, policyField, standingField} }

var errTicket = errors.New("it is no ticket of this database")

// ticket returns a ticket for the version of a lease that a heartbeat has written; due is when the
// heartbeat had to be committed, zero for a grant. Without the secret it returns "".
func (s *Store) ticket(ctx context.Context, doc document, due time.Time) leadership.Ticket {
	keys := s.keys(ctx, false)
	if !keys.known() {
		return ""
	}
	v, err := s.values(doc, writeOf{heartbeat: true, due: due})
	if err != nil {
		return ""
	}
	for _, whole := range []bool{true, false} {
		plain, err := pack(doc, v, whole)
		if err != nil {
			return ""
		}
		if t := keys.newest.seal(s.database, plain); len(t) <= leadership.MaxTicketBytes {
			return t
		}
	}
	return ""
}

// values encodes the fields of a lease document.
func (s *Store) values(doc document, w writeOf) (values, error) {
	carried, err := s.codec.Encode(&doc.record)
	if err != nil {
		return nil, err
	}
	return encodeRecord(doc.record, carried, doc.heartbeats, w), nil
}

// open returns the version of the lease in the renewal's ticket. It is zero if the ticket is not of
// this database, is of another election, or of a version that this program may not decide on: then
// the store must be read. The rule checks whether the lease is the renewal's.
func (s *Store) open(ctx context.Context, c rule.Renewal) document {
	if c.Ticket == "" {
		return document{}
	}
	plain, err := s.keys(ctx, false).open(s.database, c.Ticket)
	if errors.Is(err, errUnknownKey) {
		s.keys(ctx, true)
	}
	if err != nil {
		return document{}
	}
	doc, err := s.unpack(plain)
	if err != nil || doc.record.Election != c.Election {
		return document{}
	}
	return doc
}

// pack encodes a lease document. Unless whole is set, it leaves out the large fields.
func pack(doc document, v values, whole bool) ([]byte, error) {
	all := &firestorepb.ArrayValue{Values: make([]*firestorepb.Value, ticketPrefix, ticketPrefix+len(v))}
	all.Values[ticketElection] = text(string(doc.record.Election))
	all.Values[ticketUpdated] = instant(doc.updated)
	all.Values[ticketDigest] = instant(time.Time{})
	left := make(values, len(v))
	maps.Copy(left, v)
	if !whole {
		all.Values[ticketDigest] = bytesValue(digest(v))
		for _, name := range largeFields() {
			left[name] = &firestorepb.Value{}
		}
	}
	for _, name := range ticketFields() {
		value := left[name]
		if value == nil {
			value = &firestorepb.Value{} // no field
		}
		all.Values = append(all.Values, value)
		delete(left, name)
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("firestore: a lease document has fields that tickets do not know: %v", left)
	}
	return proto.Marshal(all)
}

// unpack is the inverse of pack. Large fields that are left out are taken from the remembered
// lease; it is an error if this handle does not remember them.
func (s *Store) unpack(plain []byte) (document, error) {
	var all firestorepb.ArrayValue
	if err := proto.Unmarshal(plain, &all); err != nil {
		return document{}, err
	}
	if len(all.Values) != ticketPrefix+len(ticketFields()) {
		return document{}, errTicket
	}
	v := values{}
	for i, name := range ticketFields() {
		if value := all.Values[ticketPrefix+i]; value.GetValueType() != nil {
			v[name] = value
		}
	}
	id := all.Values[ticketElection].GetStringValue()
	updated := all.Values[ticketUpdated].GetTimestampValue()
	if !updated.IsValid() {
		return document{}, errTicket
	}
	if want := all.Values[ticketDigest].GetBytesValue(); want != nil {
		if err := s.complete(v, leadership.Election(id), updated.AsTime(), want); err != nil {
			return document{}, err
		}
	}
	doc, err := decodeRecord(id, v, updated.AsTime(), s.codec)
	if err != nil {
		return document{}, err
	}
	return doc, rule.VerifyAlone(rule.Snapshot{Record: doc.record, Now: doc.updated, Guard: guard})
}

// complete adds the remembered large fields, which must have that digest. If this handle remembers
// only an earlier version of the lease, it forgets that, because a renewal by it would fail.
func (s *Store) complete(v values, e leadership.Election, updated time.Time, want []byte) error {
	known, ok := s.memory.known(e)
	if !ok {
		return errTicket
	}
	remembered, err := s.values(known, writeOf{})
	if err != nil {
		return err
	}
	if !bytes.Equal(digest(remembered), want) {
		if known.updated.Before(updated) {
			s.memory.forget(known)
		}
		return errTicket
	}
	for _, name := range largeFields() {
		v[name] = remembered[name]
	}
	return nil
}

// digest returns a digest of the large fields.
func digest(v values) []byte {
	h := sha256.New()
	for _, name := range largeFields() {
		s := v[name].GetStringValue()
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(s))))
		h.Write([]byte(s))
	}
	return h.Sum(nil)
}
