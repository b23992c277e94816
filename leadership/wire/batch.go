package wire

import (
	"cmp"
	"encoding/base64"
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
)

// Entry is one part of a batch. A malformed entry keeps its error and does not affect the others;
// its Value then has only the election, if that could be read.
type Entry[T any] struct {
	Value T
	Err   error
}

// UnmarshalJSON reads the entry strictly; Err is the error in it.
func (e *Entry[T]) UnmarshalJSON(text []byte) error {
	if e.Err = decode(text, &e.Value); e.Err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*leadership.Error](e.Err); ok {
		refused.Field = cmp.Or(refused.Field, "/")
	}
	var named struct {
		Election leadership.Election `json:"election"`
	}
	if Unmarshal(text, &named) == nil {
		name, _ := Marshal(named)
		_ = Unmarshal(name, &e.Value) // every entry has this field
	}
	return nil
}

// MarshalJSON writes the value.
func (e Entry[T]) MarshalJSON() ([]byte, error) { return Marshal(e.Value) }

// Entries are the parts of a batch: at least one, and at most leadership.MaxBatch.
type Entries[T any] []Entry[T]

// UnmarshalJSONFrom reads the entries. It reads no more of them than a batch may have, so that a
// large body of tiny entries is cheap to refuse.
func (all *Entries[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if kind := d.PeekKind(); kind != jsontext.KindBeginArray {
		if err := d.SkipValue(); err != nil {
			return err
		}
		return wrongKind{sent: kind, field: reflect.TypeFor[Entries[T]]()}
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	n := 0
	for ; d.PeekKind() != jsontext.KindEndArray; n++ {
		text, err := d.ReadValue()
		if err != nil {
			return err
		}
		if n < leadership.MaxBatch {
			*all = append(*all, Entry[T]{})
			_ = (*all)[n].UnmarshalJSON(text) // the entry keeps its error
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if n < 1 || n > leadership.MaxBatch {
		return malformed("", "a batch has from 1 to %d elections, this one has %d", leadership.MaxBatch, n)
	}
	return nil
}

// Renewals is the body of a batch of renewals.
type Renewals struct {
	Renewals Entries[Renewal] `json:"renewals"`
}

// Renewal is one renewal of a batch.
type Renewal struct {
	Election leadership.Election `json:"election"`
	LeaseRequest
}

// keyLength is the length of a key's text.
const keyLength = 43

// NewRenewals writes a batch.
func NewRenewals(batch []leadership.LeaseRequest) Renewals {
	w := Renewals{Renewals: make(Entries[Renewal], len(batch))}
	var keys strings.Builder // one allocation for all
	keys.Grow(len(batch) * keyLength)
	for i := range batch {
		r := &batch[i]
		var key [keyLength]byte
		base64.RawURLEncoding.Encode(key[:], r.Key[:])
		keys.Write(key[:])
		w.Renewals[i].Value = Renewal{r.Election, LeaseRequest{r.CandidateID, keys.String()[i*keyLength:], r.Token, r.Ticket, rawObject(r.Report), false}}
	}
	return w
}

// Checks is the body of a batch of checks.
type Checks struct {
	Checks Entries[Check] `json:"checks"`
}

// Check is one check of a batch.
type Check struct {
	Election leadership.Election `json:"election"`
	TokenCheck
}

// NewChecks writes a batch.
func NewChecks(batch []leadership.TokenCheck) Checks {
	w := Checks{Checks: make(Entries[Check], len(batch))}
	for i, r := range batch {
		w.Checks[i].Value = Check{Election: r.Election, TokenCheck: NewTokenCheck(r)}
	}
	return w
}

// Results is the reply to a batch, in its order.
type Results struct {
	Results []Result `json:"results"`
}

// Result is the answer to one entry: a lease or a problem.
type Result struct {
	Election leadership.Election `json:"election,omitzero"`
	Lease    *Lease              `json:"lease,omitzero"`
	Error    *Problem            `json:"error,omitzero"`
}

// At returns the JSON pointer of an entry of the batch in field.
func At(field string, i int) string { return "/" + field + "/" + strconv.Itoa(i) }

// Leadership reads the answer to the entry at the pointer. The error is for a document that is not
// an answer.
func (w Result) Leadership(at string) (leadership.Result, error) {
	switch {
	case w.Error != nil && w.Error.Code != "":
		return leadership.Result{Err: w.Error.Out(at).Leadership()}, nil
	case w.Lease == nil:
		return leadership.Result{}, malformed(at, "a result without a lease and without a problem")
	}
	l, err := w.Lease.Leadership()
	return leadership.Result{Lease: l}, err
}
