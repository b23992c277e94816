package wire

import (
	"bytes"
	"slices"
	"strconv"

	"regent/leadership"
)

// quick reads an acquire, a renewal, a release or one entry of a batch of renewals as programs send
// them: an object of strings without escapes, of whole numbers and, as metadata, of an object of a
// few such strings. It reports false for any other body, also for one that is wrong, and has read
// nothing then: package json reads those, and says what is wrong. A test holds it to what that
// reads.
func quick(text []byte, into any) bool {
	switch w := into.(type) {
	case *LeaseRequest:
		return quickRenewal(text, nil, w)
	case *Renewal:
		return quickRenewal(text, &w.Election, &w.LeaseRequest)
	case *AcquireRequest:
		return quickAcquire(text, w)
	}
	return false
}

func quickAcquire(text []byte, into *AcquireRequest) bool {
	const named, keyed, lasting, described, noted, waiting = 1, 2, 4, 8, 16, 32
	f := flat{text}
	var w AcquireRequest
	seen := 0
	for more := f.take('{'); more; more = f.take(',') {
		name, ok := f.string()
		if !ok || !f.take(':') {
			return false
		}
		field := 0
		var value []byte
		switch string(name) {
		case "candidateId":
			field = named
			value, ok = f.string()
			w.CandidateID = leadership.CandidateID(value)
		case "key":
			field = keyed
			value, ok = f.string()
			w.Key = new(string(value))
		case "leaseDuration":
			field = lasting
			w.LeaseDuration = new(Duration)
			ok = f.duration(w.LeaseDuration)
		case "metadata":
			field = described
			value, ok = f.object()
			w.Metadata = slices.Clone(value)
		case "note":
			field = noted
			value, ok = f.string()
			w.Note = string(value)
		case "wait":
			field = waiting
			ok = f.duration(&w.Wait)
		}
		if !ok || field == 0 || seen&field != 0 {
			return false
		}
		seen |= field
	}
	if !f.take('}') || !f.ended() || seen&named == 0 {
		return false
	}
	*into = w
	return true
}

// quickRenewal reads a LeaseRequest, with an election unless that is nil.
func quickRenewal(text []byte, election *leadership.Election, into *LeaseRequest) bool {
	const named, keyed, tokened, ticketed, ofElection = 1, 2, 4, 8, 16
	required := named | keyed | tokened
	if election != nil {
		required |= ofElection
	}
	f := flat{text}
	var w LeaseRequest
	var e leadership.Election
	seen := 0
	for more := f.take('{'); more; more = f.take(',') {
		name, ok := f.string()
		if !ok || !f.take(':') {
			return false
		}
		field := 0
		var value []byte
		switch string(name) {
		case "candidateId":
			field = named
			value, ok = f.string()
			w.CandidateID = leadership.CandidateID(value)
		case "key":
			field = keyed
			value, ok = f.string()
			w.Key = string(value)
		case "fencingToken":
			field = tokened
			w.FencingToken, ok = f.token()
		case "ticket":
			field = ticketed
			value, ok = f.string()
			w.Ticket = leadership.Ticket(value)
		case "election":
			field = ofElection & required
			value, ok = f.string()
			e = leadership.Election(value)
		}
		if !ok || field == 0 || seen&field != 0 {
			return false
		}
		seen |= field
	}
	if !f.take('}') || !f.ended() || seen&required != required {
		return false
	}
	*into = w
	if election != nil {
		*election = e
	}
	return true
}

// flat is what is left of a JSON object of plain strings and whole numbers.
type flat struct{ rest []byte }

func (f *flat) space() {
	for len(f.rest) > 0 {
		switch f.rest[0] {
		case ' ', '\t', '\n', '\r':
			f.rest = f.rest[1:]
		default:
			return
		}
	}
}

func (f *flat) ended() bool {
	f.space()
	return len(f.rest) == 0
}

// take reads the character, if it comes next.
func (f *flat) take(c byte) bool {
	f.space()
	if len(f.rest) == 0 || f.rest[0] != c {
		return false
	}
	f.rest = f.rest[1:]
	return true
}

// string reads a string of ASCII without escapes.
func (f *flat) string() ([]byte, bool) {
	if !f.take('"') {
		return nil, false
	}
	for i, c := range f.rest {
		switch {
		case c == '"':
			value := f.rest[:i]
			f.rest = f.rest[i+1:]
			return value, true
		case c < ' ', c > '~', c == '\\':
			return nil, false
		}
	}
	return nil, false
}

func (f *flat) duration(d *Duration) bool {
	text, ok := f.string()
	return ok && d.UnmarshalText(text) == nil
}

// object reads an object of up to eight strings, each with a name of its own, and returns its text.
func (f *flat) object() ([]byte, bool) {
	f.space()
	begin := f.rest
	var names [8][]byte
	n := 0
	for more := f.take('{'); more; more = f.take(',') {
		name, ok := f.string()
		same := func(other []byte) bool { return bytes.Equal(name, other) }
		if !ok || n == len(names) || slices.ContainsFunc(names[:n], same) || !f.take(':') {
			return nil, false
		}
		names[n] = name
		n++
		if _, ok := f.string(); !ok {
			return nil, false
		}
	}
	if n == 0 || !f.take('}') {
		return nil, false
	}
	return begin[:len(begin)-len(f.rest)], true
}

// token reads a whole number of up to 18 digits.
func (f *flat) token() (leadership.Token, bool) {
	f.space()
	n := 0
	for n < len(f.rest) && f.rest[n] >= '0' && f.rest[n] <= '9' {
		n++
	}
	if n == 0 || n > 18 || n > 1 && f.rest[0] == '0' {
		return 0, false
	}
	value, err := strconv.ParseInt(string(f.rest[:n]), 10, 64)
	f.rest = f.rest[n:] // a fraction or an exponent is neither a comma nor the end
	return leadership.Token(value), err == nil
}
