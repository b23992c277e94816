package wire

import (
	"bytes"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
)

// scan reads a document without reflection, as programs write it: known members, each once, those
// that are required, and whole numbers. It fails if the text has anything else; then package json
// reads it, or returns the error. It never takes a text that json refuses, nor gives it another
// meaning: tests hold it to that.
type scan struct {
	text   []byte
	at     int
	failed bool

	free []int64 // see pointer
	last *last   // of a document with several of a kind, else nil
}

// last is the last text of each member and its value: the leases of a batch have many in common.
type last struct {
	strings  [stringNames]string
	instants [instantNames]instant
}

// instant is one that has been read, and its text.
type instant struct {
	text []byte
	at   time.Time
}

// took sets the document if the whole text was read.
func took[T any](s *scan, into *T, document T) bool {
	if s.space(); s.failed || s.at != len(s.text) {
		return false
	}
	*into = document
	return true
}

func (s *scan) fail() { s.failed = true }

// space moves on behind white space.
func (s *scan) space() {
	for s.at < len(s.text) && s.text[s.at] <= ' ' && isSpace(s.text[s.at]) {
		s.at++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

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

// members is a set of the members of an object.
type members uint64

// once adds a member. It fails if the object has had it already.
func (s *scan) once(had *members, member members) {
	if *had&member != 0 {
		s.fail()
	}
	*had |= member
}

// require fails if the object has not had all of them.
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

// room returns for how many elements of an array there should be room. Objects may have much in
// common.
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

// raw returns the next string, as long as the text is kept.
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

// string returns the next string, the value of a member with that number. One that is like the last
// is not copied, nor is the state that most leases are in.
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

// pointer returns where n is kept. Two are allocated at once: a lease that is held has two.
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

// instant returns the next instant, the value of a member with that number.
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

// value returns the text of the next value, if it is JSON. It fails for one that may be nested more
// deeply than json reads.
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

// members moves on behind an object of up to ten members, each with a name of its own: strings,
// integers that are not negative, and such objects, nested so deep.
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

// batch fails if a batch of n entries is refused.
func (s *scan) batch(n int) {
	if n < 1 || n > leadership.MaxBatch {
		s.fail()
	}
}
