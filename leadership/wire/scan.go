package wire

import (
	"bytes"
	"encoding/json"
	"slices"
)

// member is one of an object's, as it stands in a document.
type member struct {
	name  []byte
	value []byte
}

// members are those of an object that wellFormed has passed.
func members(object []byte) []member {
	all := make([]member, 0, 6)
	for i := spaces(object, 0) + 1; ; {
		if i = spaces(object, i); object[i] == '}' {
			return all
		}
		colon := afterString(object, i)
		name := unquote(object[i:colon])
		i = spaces(object, spaces(object, colon)+1)
		end := afterValue(object, i)
		all = append(all, member{name, object[i:end]})
		if i = spaces(object, end); object[i] == ',' {
			i++
		}
	}
}

// elements are those of an array that wellFormed has passed, as they stand in the document.
func elements(array []byte) (all [][]byte) {
	for i := spaces(array, 0) + 1; ; {
		if i = spaces(array, i); array[i] == ']' {
			return all
		}
		end := afterValue(array, i)
		all = append(all, array[i:end])
		if i = spaces(array, end); array[i] == ',' {
			i++
		}
	}
}

// unquote reads a string.
func unquote(text []byte) []byte {
	if bytes.IndexByte(text, '\\') < 0 {
		return text[1 : len(text)-1]
	}
	var s string
	json.Unmarshal(text, &s) // what is well formed can be read
	return []byte(s)
}

// spaces is where they end that begin there, if any do.
func spaces(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r') {
		at++
	}
	return at
}

// afterString is where the string ends that begins there.
func afterString(text []byte, at int) int {
	for at++; text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// afterValue is where the value ends that begins there.
func afterValue(text []byte, at int) int {
	depth := 0
	for ; at < len(text); at++ {
		switch text[at] {
		case '"':
			if at = afterString(text, at) - 1; depth == 0 {
				return at + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				return at + 1 + depth // one that closes what is around the value is not of it
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return at
			}
		}
	}
	return at
}

// maxPlain is how many names an object may have for plain to look at it: it compares each with each.
const maxPlain = 16

// plain says of valid JSON that no object has a name twice, that nothing is too deep, and that nothing is escaped. Almost all documents are so, and
// seen to be in one pass; the walker looks at the others, and at objects of more names than any document of ours has.
func plain(body []byte) bool {
	if bytes.IndexByte(body, '\\') >= 0 {
		return false
	}
	var names [MaxDepth + 1][][]byte // of the object that is open at each depth
	depth := 0
	for at := 0; at < len(body); at++ {
		switch body[at] {
		case '{', '[':
			if depth++; depth > MaxDepth {
				return false
			}
			names[depth] = names[depth][:0]
		case '}', ']':
			depth--
		case '"':
			end := afterString(body, at)
			name := body[at:end]
			at = end - 1
			if next := spaces(body, end); next == len(body) || body[next] != ':' {
				continue
			}
			if len(names[depth]) == maxPlain || slices.ContainsFunc(names[depth], func(other []byte) bool { return bytes.Equal(other, name) }) {
				return false
			}
			names[depth] = append(names[depth], name)
		}
	}
	return true
}
