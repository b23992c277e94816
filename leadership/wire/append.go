package wire

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
)

// The documents that servers write most are written here, field by field, as package json would
// write them; a test holds them to that.

// usual is how many bytes a document has, or a few more: a lease has some 500.
const usual = 640

// appendDocument appends v. It reports false if v is none of the documents that are written here.
func appendDocument(text []byte, v any) (more []byte, known bool, err error) {
	switch v := v.(type) {
	case *Lease:
		more, err = AppendLease(text, v)
	case *Grant:
		more, err = AppendGrant(text, v)
	case *Event:
		more, err = appendEvent(text, v)
	case Event:
		more, err = appendEvent(text, &v)
	default:
		return text, false, nil
	}
	return more, true, err
}

// AppendLease appends a lease as Marshal writes it.
func AppendLease(text []byte, w *Lease) ([]byte, error) {
	o := object{text: append(text, '{')}
	o.lease(w)
	return o.end()
}

// AppendGrant appends a grant as Marshal writes it.
func AppendGrant(text []byte, w *Grant) ([]byte, error) {
	o := object{text: append(text, '{')}
	o.lease(&w.Lease)
	o.optional("key", w.Key)
	o.optionalInteger("waitedMs", w.WaitedMs)
	if w.Inherited != nil {
		o.any("inherited", w.Inherited)
	}
	return o.end()
}

// AppendResult appends the answer to one entry of a batch as Marshal writes it. lease is the
// entry's, or nil if the answer is a problem.
func AppendResult(text []byte, e leadership.Election, lease *Lease, problem *Problem) ([]byte, error) {
	o := object{text: append(text, '{')}
	o.optional("election", string(e))
	if lease != nil {
		o.name("lease")
		o.text, o.err = AppendLease(o.text, lease)
	}
	if problem != nil {
		o.name("error")
		document, err := Marshal(problem)
		o.text, o.err = append(o.text, document...), err
	}
	return o.end()
}

func appendEvent(text []byte, w *Event) ([]byte, error) {
	o := object{text: append(text, '{')}
	o.string("election", string(w.Election))
	o.integer("revision", int64(w.Revision))
	o.string("type", string(w.Type))
	o.name("at")
	o.instant(w.At)
	o.optional("leaderId", string(w.LeaderID))
	o.optional("previousLeaderId", string(w.PreviousLeaderID))
	o.integer("fencingToken", int64(w.FencingToken))
	o.optional("requestId", w.RequestID)
	o.optional("actor", w.Actor)
	o.optional("reason", w.Reason)
	o.optionalValue("detail", w.Detail)
	return o.end()
}

// object is a JSON object under construction. Its names need no escapes.
type object struct {
	text []byte
	err  error // the first
}

func (o *object) end() ([]byte, error) { return append(o.text, '}'), o.err }

func (o *object) lease(w *Lease) {
	o.string("election", string(w.Election))
	o.string("state", string(w.State))
	o.optional("leaderId", string(w.LeaderID))
	o.integer("fencingToken", int64(w.FencingToken))
	o.integer("revision", int64(w.Revision))
	o.duration("leaseDuration", w.LeaseDuration)
	if w.ExpiresInMs != nil {
		o.integer("expiresInMs", *w.ExpiresInMs)
	}
	if w.RenewInMs != nil {
		o.integer("renewInMs", *w.RenewInMs)
	}
	o.optionalInteger("lockedForMs", w.LockedForMs)
	o.optionalInstant("acquiredAt", w.AcquiredAt)
	o.optionalInstant("lastHeartbeat", w.LastHeartbeat)
	o.optionalInstant("leaseExpiration", w.LeaseExpiration)
	o.optionalInstant("readAt", w.ReadAt)
	o.optionalInstant("endsBy", w.EndsBy)
	o.optional("endsBecause", string(w.EndsBecause))
	o.optionalInteger("endsInMs", w.EndsInMs)
	if w.Succession != nil {
		o.any("succession", w.Succession)
	}
	if w.Ready != nil {
		o.any("ready", *w.Ready)
	}
	if w.Via != nil {
		o.any("via", w.Via)
	}
	o.optionalValue("metadata", w.Metadata)
	o.optional("note", w.Note)
	o.optionalValue("report", w.Report)
	o.optionalInstant("reportedAt", w.ReportedAt)
	o.optionalInteger("reportAgeMs", w.ReportAgeMs)
	o.name("configuration")
	o.configuration(&w.Configuration)
	if w.Overrides != nil {
		o.any("overrides", w.Overrides)
	}
	if w.Deleted {
		o.name("deleted")
		o.text = append(o.text, "true"...)
	}
	if w.Configured {
		o.any("configured", true)
	}
	o.optional("ticket", string(w.Ticket))
	o.optionalInteger("maxStalenessMs", w.MaxStalenessMs)
}

// any writes a member that is rare, by package json.
func (o *object) any(name string, v any) {
	o.name(name)
	text, err := Marshal(v)
	if err != nil {
		o.fail(err)
	}
	o.text = append(o.text, text...)
}

func (o *object) name(name string) {
	if o.text[len(o.text)-1] != '{' {
		o.text = append(o.text, ',')
	}
	o.text = append(o.text, '"')
	o.text = append(o.text, name...)
	o.text = append(o.text, '"', ':')
}

func (o *object) string(name, s string) {
	o.name(name)
	if isPlain(s) {
		o.text = append(o.text, '"')
		o.text = append(o.text, s...)
		o.text = append(o.text, '"')
		return
	}
	o.text, _ = jsontext.AppendQuote(o.text, s) // an error says that it has replaced wrong bytes
}

// isPlain reports whether a string stands in JSON as it is. It may report false for one that does.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func (o *object) optional(name, s string) {
	if s != "" {
		o.string(name, s)
	}
}

func (o *object) integer(name string, n int64) {
	o.name(name)
	o.text = strconv.AppendInt(o.text, n, 10)
}

func (o *object) optionalInteger(name string, n int64) {
	if n != 0 {
		o.integer(name, n)
	}
}

func (o *object) duration(name string, d Duration) {
	o.name(name)
	o.text = append(o.text, '"')
	o.text, _ = d.AppendText(o.text) // there is no error
	o.text = append(o.text, '"')
}

func (o *object) optionalDuration(name string, d Duration) {
	if d != 0 {
		o.duration(name, d)
	}
}

func (o *object) optionalInstant(name string, t time.Time) {
	if !t.IsZero() {
		o.name(name)
		o.instant(t)
	}
}

func (o *object) instant(t time.Time) {
	if y := t.Year(); y < 0 || y > 9999 {
		o.fail(fmt.Errorf("wire: an instant in the year %d, which RFC 3339 cannot show", y))
	}
	o.text = append(o.text, '"')
	o.text = t.AppendFormat(o.text, time.RFC3339Nano)
	o.text = append(o.text, '"')
}

// optionalValue appends an object in the canonical form of this program. That has no spaces, but
// may have escapes that Marshal writes otherwise.
func (o *object) optionalValue(name string, v jsontext.Value) {
	if len(v) == 0 {
		return
	}
	o.name(name)
	if isCanonical(v) {
		o.text = append(o.text, v...)
		return
	}
	text, err := jsontext.AppendFormat(o.text, v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		o.fail(fmt.Errorf("wire: %s: %w", name, err))
		return
	}
	o.text = text
}

// isCanonical reports whether the text of an object has no escapes.
func isCanonical(v jsontext.Value) bool {
	if v[0] != '{' || v[len(v)-1] != '}' {
		return false
	}
	return !slices.Contains(v, '\\')
}

func (o *object) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}

// AppendRenewal appends the body of a renewal or a release as Marshal writes it.
func AppendRenewal(text []byte, r leadership.LeaseRequest) []byte {
	o := object{text: append(text, '{')}
	o.renewal(&r)
	return append(o.text, '}')
}

// AppendRenewals appends the body of a batch of renewals as Marshal writes it.
func AppendRenewals(text []byte, batch []leadership.LeaseRequest) []byte {
	const least = 160 // bytes of a renewal with short names, without a ticket
	o := object{text: append(slices.Grow(text, len(batch)*least), `{"renewals":[`...)}
	for i := range batch {
		if i > 0 {
			o.text = append(o.text, ',')
		}
		o.text = append(o.text, '{')
		o.string("election", string(batch[i].Election))
		o.renewal(&batch[i])
		o.text = append(o.text, '}')
	}
	return append(o.text, "]}"...)
}

func (o *object) renewal(r *leadership.LeaseRequest) {
	o.string("candidateId", string(r.CandidateID))
	o.name("key")
	o.text = base64.RawURLEncoding.AppendEncode(append(o.text, '"'), r.Key[:])
	o.text = append(o.text, '"')
	o.integer("fencingToken", int64(r.Token))
	o.optional("ticket", string(r.Ticket))
	o.optionalValue("report", rawObject(r.Report))
}
