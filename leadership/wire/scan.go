package wire

import (
	"bytes"
	"slices"
	"time"
)

// scan reads a text from its beginning to its end.
type scan struct {
	text   []byte
	at     int
	failed bool

	// the last instant of each member of a lease: the leases of a batch have many in common
	instants [6]instant
}

// instant is one that has been read, and its text.
type instant struct {
	text []byte
	at   time.Time
}

func (s *scan) fail() { s.failed = true }

// space moves on behind white space.
func (s *scan) space() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\n' || s.text[s.at] == '\t' || s.text[s.at] == '\r') {
		s.at++
	}
}

// skip moves on if c comes next.
func (s *scan) skip(c byte) bool {
	s.space()
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
	s.space()
	from := s.at
	for ; s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9'; s.at++ {
		n = n*10 + int64(s.text[s.at]-'0')
	}
	if digits := s.at - from; digits == 0 || digits > 18 || digits > 1 && s.text[from] == '0' {
		s.fail()
	}
	return n
}

// strings returns an array of strings.
func (s *scan) strings() []string {
	all := []string{}
	s.expect('[')
	for !s.failed && !s.skip(']') {
		if len(all) > 0 {
			s.expect(',')
		}
		all = append(all, string(s.raw()))
	}
	return all
}

func (s *scan) truth() bool {
	const yes = "true"
	s.space()
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
	if n := in.number(); !in.failed && n < 1e9 && raw[0] != ' ' && in.at == len(raw)-1 && raw[in.at] == 's' {
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

// once adds a member. It fails if the object has had it already, or if it is unknown: zero.
func (s *scan) once(had *members, member members) {
	if member == 0 || *had&member != 0 {
		s.fail()
	}
	*had |= member
}

// object returns the text of an object of up to ten members, each with a name of its own: strings,
// integers that are not negative, and objects of such members.
func (s *scan) object() []byte {
	s.space()
	from := s.at
	s.members(2)
	if s.failed {
		return nil
	}
	return s.text[from:s.at]
}

// members reads an object whose members may be nested so deep.
func (s *scan) members(depth int) {
	var names [10][]byte
	n := 0
	for name := s.first(); name != nil; name = s.next() {
		same := func(other []byte) bool { return bytes.Equal(name, other) }
		if n == len(names) || slices.ContainsFunc(names[:n], same) {
			s.fail()
			return
		}
		names[n] = name
		n++
		s.value(depth)
	}
}

func (s *scan) value(depth int) {
	s.space()
	switch {
	case s.at == len(s.text):
		s.fail()
	case s.text[s.at] == '"':
		s.raw()
	case s.text[s.at] == '{' && depth > 1:
		s.members(depth - 1)
	default:
		s.number()
	}
}
