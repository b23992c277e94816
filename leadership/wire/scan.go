package wire

import (
	"bytes"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
)

// scan reads a document without reflection, in the form in which programs write it: known members,
// each once, all required ones, and whole numbers. It fails if the text has anything else; then
// package json reads it, or returns the error. It never accepts a text that json refuses, nor gives
// it another meaning, which tests check.
type scan struct {
	text   []byte
	at     int
	failed bool

	free []int64 // see pointer
	last *last   // for a document with many similar parts, otherwise nil
}

// last caches the last text and value of each member: the leases of a batch have many in common.
type last struct {
	strings  [stringNames]string
	instants [instantNames]instant
}

// instant is an instant with the text that it was read from.
type instant struct {
	text []byte
	at   time.Time
}

// took sets the document and reports true if the whole text was read without a failure.
func took[T any](s *scan, into *T, document T) bool {
	if s.space(); s.failed || s.at != len(s.text) {
		return false
	}
	*into = document
	return true
}

func (s *scan) fail() { s.failed = true }

// space skips white space.
func (s *scan) space() {
	for s.at < len(s.text) && s.text[s.at] <= ' ' && isSpace(s.text[s.at]) {
		s.at++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// skip skips white space and then c, and reports whether c came next.
func (s *scan) skip(c byte) bool {
	s.space()
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// expect skips c, and fails if something else comes next.
func (s *scan) expect(c byte) {
	if !s.skip(c) {
		s.fail()
	}
}

// first returns the name of the first member of an object, and next the name of the next one; nil
// after the last.
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

// members is a set of the members of an object.
type members uint64

// once adds a member. It fails if the member is repeated.
func (s *scan) once(had *members, member members) {
	if *had&member != 0 {
		s.fail()
	}
	*had |= member
}

// require fails unless had contains all required members.
func (s *scan) require(had, required members) {
	if had&required != required {
		s.fail()
	}
}

// more reports whether an array, of which n elements were read, has another one.
func (s *scan) more(n int) bool {
	switch {
	case n == 0:
		s.expect('[')
	case s.failed:
		return false
	}
	if s.skip(']') {
		return false
	}
	if n > 0 {
		s.expect(',')
	}
	return !s.failed
}

// room returns the capacity to allocate for an array. For objects it also allocates last, because
// they may have much in common.
func (s *scan) room(objects bool) int {
	const usual = 512 // bytes of a result
	if !objects {
		return 0
	}
	if s.last == nil {
		s.last = new(last)
	}
	return (len(s.text)-s.at)/usual + 1
}

// raw returns the next string; it is valid as long as the text is.
func (s *scan) raw() []byte {
	s.expect('"')
	rest, n, long := s.text[s.at:], 0, false
	for ; n < len(rest); n++ {
		if c := rest[n]; special[c] {
			if c < utf8.RuneSelf {
				break
			}
			long = true
		}
	}
	if n == len(rest) || rest[n] != '"' || long && !utf8.Valid(rest[:n]) {
		s.fail()
		return nil
	}
	s.at += n + 1
	return rest[:n]
}

// string returns the next string, the value of the member with that number. It does not copy a
// string that equals the member's last one, or that is the state of most leases.
func (s *scan) string(name int) string {
	if s.failed {
		return ""
	}
	from := s.at
	raw := s.raw()
	if s.failed {
		s.at, s.failed = from, false
		return s.unquote()
	}
	if string(raw) == string(leadership.Held) {
		return string(leadership.Held)
	}
	if s.last == nil {
		return string(raw)
	}
	last := &s.last.strings[name]
	if string(raw) != *last {
		*last = string(raw)
	}
	return *last
}

// unquote returns the next string, which has escapes.
func (s *scan) unquote() string {
	text, err := jsontext.AppendUnquote(nil, s.value())
	if err != nil {
		s.fail()
	}
	return string(text)
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

func (s *scan) int() int {
	n := s.number()
	if int64(int(n)) != n {
		s.fail()
	}
	return int(n)
}

// pointer returns a pointer to a copy of n. It allocates two at a time, because a held lease has
// two.
func (s *scan) pointer(n int64) *int64 {
	if len(s.free) == 0 {
		s.free = make([]int64, 2)
	}
	p := &s.free[0]
	s.free = s.free[1:]
	*p = n
	return p
}

func (s *scan) bool() bool {
	s.space()
	rest := s.text[s.at:]
	switch {
	case bytes.HasPrefix(rest, []byte("true")):
		s.at += len("true")
		return true
	case bytes.HasPrefix(rest, []byte("false")):
		s.at += len("false")
	default:
		s.fail()
	}
	return false
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

// instant returns the next instant, the value of the member with that number.
func (s *scan) instant(name int) time.Time {
	raw := s.raw()
	if s.last != nil && len(raw) > 0 && bytes.Equal(raw, s.last.instants[name].text) {
		return s.last.instants[name].at
	}
	var t time.Time
	if !isPlainInstant(raw) || t.UnmarshalText(raw) != nil {
		s.fail()
	} else if s.last != nil {
		s.last.instants[name] = instant{raw, t}
	}
	return t
}

// isPlainInstant reports whether the text has the form in which servers write instants.
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

// object returns the next value, an object.
func (s *scan) object() jsontext.Value {
	s.space()
	plain := *s
	if plain.members(2); !plain.failed {
		v := s.text[s.at:plain.at]
		s.at = plain.at
		return bytes.Clone(v)
	}
	v := s.value()
	if len(v) == 0 || v[0] != '{' || !v.IsValid() {
		s.fail()
	}
	return v.Clone()
}

// scanAny returns the next value, which package json reads.
func scanAny[T any](s *scan) (v T) {
	if text := s.value(); s.failed || decodeAny(text, &v) != nil {
		s.fail()
	}
	return v
}

// value returns the text of the next value, if that is JSON. It fails for a value that may be
// nested more deeply than json accepts.
func (s *scan) value() jsontext.Value {
	const most = 10_000 // bytes, and so fewer arrays and objects
	s.space()
	from, depth, quoted := s.at, 0, false
	for ; s.at < len(s.text) && s.at < from+most; s.at++ {
		switch c := s.text[s.at]; {
		case quoted && c == '\\':
			s.at++ // the next one is escaped
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case depth > 0 && (c == '}' || c == ']'):
			depth--
		case depth == 0 && (c == '}' || c == ']' || c == ',' || isSpace(c)):
			return s.text[from:s.at]
		}
	}
	s.fail()
	return nil
}

// members skips an object of up to ten members with distinct names: strings, non-negative integers,
// and such objects nested up to depth. It fails for any other.
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
		switch s.space(); {
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
}

// batch fails if a batch may not have n entries.
func (s *scan) batch(n int) {
	if n < 1 || n > leadership.MaxBatch {
		s.fail()
	}
}
