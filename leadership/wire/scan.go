package wire

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
)

// The documents of a leader's calls are read and written here without reflection. The scan reads
// what this version of the server writes: known fields, at most once, without spaces, and strings
// that are printable ASCII without escapes. It gives up at anything else, which is then left to
// package json; it never takes a text that json would not, nor in another way.

// scanInto reads a document. It reports false, and leaves it alone, if it has to be read otherwise.
func scanInto(text []byte, into any) bool {
	s := scan{text: text}
	switch into := into.(type) {
	case *Results:
		return took(&s, into, s.results())
	case *Lease:
		var w Lease
		s.lease(&w, &Lease{}, nil)
		return took(&s, into, w)
	case *Grant:
		var g Grant
		s.lease(&g.Lease, &Lease{}, &g)
		return took(&s, into, g)
	}
	return false
}

// took sets the document if the whole text was read.
func took[T any](s *scan, into *T, document T) bool {
	for s.skip('\n') {
	}
	if s.failed || s.at != len(s.text) {
		return false
	}
	*into = document
	return true
}

// scan is a text that has been read up to a place.
type scan struct {
	text   []byte
	at     int
	failed bool

	// the last instant of each member of a lease: the leases of a batch have many in common
	instants [4]instant
}

// instant is one that has been read, and its text.
type instant struct {
	text []byte
	at   time.Time
}

func (s *scan) fail() { s.failed = true }

// skip moves on if the next byte is c.
func (s *scan) skip(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// expect moves on behind c.
func (s *scan) expect(c byte) {
	if !s.skip(c) {
		s.fail()
	}
}

// raw returns the next string, as long as the text is kept.
func (s *scan) raw() []byte {
	s.expect('"')
	for i := s.at; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			value := s.text[s.at:i]
			s.at = i + 1
			return value
		case c < ' ' || c > '~' || c == '\\':
			s.fail()
			return nil
		}
	}
	s.fail()
	return nil
}

// scanString returns the next string: like itself if they are equal, which saves a copy.
func scanString[T ~string](s *scan, like T) T {
	raw := s.raw()
	if string(raw) == string(like) {
		return like
	}
	return T(raw)
}

// number returns the next integer, if it is not negative and has no more than 18 digits.
func (s *scan) number() (n int64) {
	from := s.at
	for ; s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9'; s.at++ {
		n = n*10 + int64(s.text[s.at]-'0')
	}
	if digits := s.at - from; digits == 0 || digits > 18 || digits > 1 && s.text[from] == '0' {
		s.fail()
	}
	return n
}

func (s *scan) truth() bool {
	const yes = "true"
	if len(s.text)-s.at < len(yes) || string(s.text[s.at:s.at+len(yes)]) != yes {
		s.fail()
		return false
	}
	s.at += len(yes)
	return true
}

func (s *scan) duration() (d Duration) {
	raw := s.raw()
	// most are whole seconds
	in := scan{text: raw}
	if n := in.number(); !in.failed && n < 1e9 && in.at == len(raw)-1 && raw[in.at] == 's' {
		return Duration(n) * Duration(time.Second)
	}
	if d.UnmarshalText(raw) != nil {
		s.fail()
	}
	return d
}

// instant returns the next instant. The last one is kept.
func (s *scan) instant(last *instant) time.Time {
	raw := s.raw()
	if last.text != nil && bytes.Equal(raw, last.text) {
		return last.at
	}
	var t time.Time
	if !isPlainInstant(raw) || t.UnmarshalText(raw) != nil {
		s.fail()
		return t
	}
	*last = instant{raw, t}
	return t
}

// isPlainInstant reports whether the text looks like an instant as servers write it.
func isPlainInstant(text []byte) bool {
	const seconds = "0000-00-00T00:00:00"
	if len(text) <= len(seconds) || len(text) > len(seconds)+len(".000000000Z") || text[len(text)-1] != 'Z' {
		return false
	}
	for i, c := range text[:len(text)-1] {
		switch {
		case i < len(seconds) && seconds[i] != '0', i == len(seconds):
			if want := (seconds + ".")[i]; c != want {
				return false
			}
		case c < '0' || c > '9':
			return false
		}
	}
	return len(text) != len(seconds+".Z")
}

// first returns the name of the first member of an object, and next that of the next; nil after the
// last.
func (s *scan) first() []byte {
	if s.expect('{'); s.skip('}') {
		return nil
	}
	return s.name()
}

func (s *scan) next() []byte {
	if s.failed || s.skip('}') {
		return nil
	}
	s.expect(',')
	return s.name()
}

func (s *scan) name() []byte {
	name := s.raw()
	if s.expect(':'); s.failed {
		return nil
	}
	return name
}

// members is the set of those that an object has had.
type members uint32

// once adds a member, which must not be there yet. Zero is one that is not known.
func (s *scan) once(had *members, member members) {
	if member == 0 || *had&member != 0 {
		s.fail()
	}
	*had |= member
}

func (s *scan) results() (w Results) {
	const usual = 512 // bytes of a result
	w.Results = make([]Result, 0, len(s.text)/usual+1)
	if string(s.first()) != "results" {
		s.fail()
	}
	s.expect('[')
	like := &Lease{}
	for !s.failed && !s.skip(']') {
		if len(w.Results) > 0 {
			s.expect(',')
		}
		r := s.result(like)
		if w.Results = append(w.Results, r); r.Lease != nil {
			like = r.Lease
		}
	}
	s.expect('}')
	return w
}

// result reads a result with a lease. The lease is like another one, which saves copies.
func (s *scan) result(like *Lease) (r Result) {
	var had, member members
	for name := s.first(); name != nil; name = s.next() {
		switch string(name) {
		case "election":
			member, r.Election = 1, scanString(s, r.Election)
		case "lease":
			member, r.Lease = 2, &Lease{Election: r.Election}
			s.lease(r.Lease, like, nil)
		default: // an error, too
			member = 0
		}
		s.once(&had, member)
	}
	return r
}

// lease reads a lease like another one, or the one in a grant. It may have the name of its election
// already.
func (s *scan) lease(w, like *Lease, g *Grant) {
	var had, member members
	ms := new([2]int64)
	for name := s.first(); name != nil; name = s.next() {
		switch string(name) {
		case "election":
			member, w.Election = 1<<0, scanString(s, w.Election)
		case "state":
			member, w.State = 1<<1, scanString(s, leadership.Held)
		case "leaderId":
			member, w.LeaderID = 1<<2, scanString(s, like.LeaderID)
		case "fencingToken":
			member, w.FencingToken = 1<<3, leadership.Token(s.number())
		case "revision":
			member, w.Revision = 1<<4, leadership.Revision(s.number())
		case "leaseDuration":
			member, w.LeaseDuration = 1<<5, s.duration()
		case "expiresInMs":
			ms[0] = s.number()
			member, w.ExpiresInMs = 1<<6, &ms[0]
		case "renewInMs":
			ms[1] = s.number()
			member, w.RenewInMs = 1<<7, &ms[1]
		case "lockedForMs":
			member, w.LockedForMs = 1<<8, s.number()
		case "acquiredAt":
			member, w.AcquiredAt = 1<<9, s.instant(&s.instants[0])
		case "lastHeartbeat":
			member, w.LastHeartbeat = 1<<10, s.instant(&s.instants[1])
		case "leaseExpiration":
			member, w.LeaseExpiration = 1<<11, s.instant(&s.instants[2])
		case "readAt":
			member, w.ReadAt = 1<<12, s.instant(&s.instants[3])
		case "metadata":
			member, w.Metadata = 1<<13, s.plainObject()
		case "note":
			member, w.Note = 1<<14, scanString(s, like.Note)
		case "configuration":
			member, w.Configuration = 1<<15, s.configuration()
		case "ticket":
			member, w.Ticket = 1<<16, leadership.Ticket(s.raw())
		case "maxStalenessMs":
			member, w.MaxStalenessMs = 1<<17, s.number()
		case "deleted":
			member, w.Deleted = 1<<18, s.truth()
		case "waitedMs":
			if member = 0; g != nil {
				member, g.WaitedMs = 1<<19, s.number()
			}
		case "key":
			if member = 0; g != nil {
				member, g.Key = 1<<20, string(s.raw())
			}
		default: // one of the rare ones, too
			member = 0
		}
		s.once(&had, member)
	}
	if had&1 == 0 {
		w.Election = ""
	}
}

func (s *scan) configuration() (w Configuration) {
	var had, member members
	for name := s.first(); name != nil; name = s.next() {
		switch string(name) {
		case "leaseDuration":
			member, w.LeaseDuration = 1<<0, s.duration()
		case "maxLeaseDuration":
			member, w.MaxLeaseDuration = 1<<1, s.duration()
		case "lockDelay":
			member, w.LockDelay = 1<<2, s.duration()
		case "retireAfter":
			member, w.RetireAfter = 1<<3, s.duration()
		default:
			member = 0
		}
		s.once(&had, member)
	}
	return w
}

// plainObject returns a copy of an object whose values are strings. Names must rise, so that none
// is there twice.
func (s *scan) plainObject() jsontext.Value {
	from, last := s.at, []byte(nil)
	for name := s.first(); name != nil; name = s.next() {
		if last != nil && string(last) >= string(name) {
			s.fail()
		}
		last = name
		s.raw()
	}
	if s.failed {
		return nil
	}
	return bytes.Clone(s.text[from:s.at])
}

// AppendRenewal appends the body of a renewal or a release.
func AppendRenewal(text []byte, r leadership.LeaseRequest) []byte {
	return append(appendRenewal(append(text, '{'), r), '}')
}

// AppendRenewals appends the body of a batch of renewals.
func AppendRenewals(text []byte, batch []leadership.LeaseRequest) []byte {
	const least = 160 // bytes of a renewal with short names, without a ticket
	text = append(slices.Grow(text, len(batch)*least), `{"renewals":[`...)
	for i, r := range batch {
		if i > 0 {
			text = append(text, ',')
		}
		text = appendText(append(text, `{"election":`...), string(r.Election))
		text = append(appendRenewal(append(text, ','), r), '}')
	}
	return append(text, "]}"...)
}

// appendRenewal appends the members of a LeaseRequest.
func appendRenewal(text []byte, r leadership.LeaseRequest) []byte {
	text = appendText(append(text, `"candidateId":`...), string(r.CandidateID))
	text = base64.RawURLEncoding.AppendEncode(append(text, `,"key":"`...), r.Key[:])
	text = strconv.AppendInt(append(text, `","fencingToken":`...), int64(r.Token), 10)
	if r.Ticket != "" {
		text = appendText(append(text, `,"ticket":`...), string(r.Ticket))
	}
	return text
}

// appendText appends a string. What is not UTF-8 in it becomes U+FFFD, as in Marshal.
func appendText(text []byte, s string) []byte {
	text, _ = jsontext.AppendQuote(text, s)
	return text
}
