package authn

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"time"
	"unicode/utf8"
)

// object is a JSON object of a token. Its methods take a member that is not there for the zero value of what they read.
type object map[string]json.RawMessage

// errMalformed is all that is told of a document: what an error of encoding/json repeats might be a secret.
var errMalformed = errors.New("malformed")

// readObject reads a part of a token: base64url without padding, and in it one JSON object, in which no name stands twice at any depth.
func readObject(part string) (object, error) {
	document, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil || !utf8.Valid(document) {
		return nil, errMalformed
	}
	var o object
	if err := json.Unmarshal(document, &o); err != nil || o == nil {
		return nil, errMalformed
	}
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	return o, unambiguous(d)
}

// unambiguous reads one value, which is known to be sound, and refuses a name that stands twice in an object.
func unambiguous(d *json.Decoder) error {
	token, err := d.Token()
	if err != nil {
		return errMalformed
	}
	if _, ok := token.(json.Delim); !ok {
		return nil
	}
	seen := map[json.Token]bool{}
	for d.More() {
		if token == json.Delim('{') {
			name, _ := d.Token() // a string, as readObject knows
			if seen[name] {
				return errMalformed
			}
			seen[name] = true
		}
		if err := unambiguous(d); err != nil {
			return err
		}
	}
	_, err = d.Token() // the closing one
	return err
}

func (o object) has(name string) bool {
	_, ok := o[name]
	return ok
}

// text reads a string.
func (o object) text(name string) (string, error) {
	if !o.has(name) {
		return "", nil
	}
	return text(o[name])
}

// texts reads a string or an array of strings.
func (o object) texts(name string) (all []string, err error) {
	var elements []json.RawMessage
	switch {
	case !o.has(name):
		return nil, nil
	case o[name][0] != '[':
		elements = []json.RawMessage{o[name]}
	case json.Unmarshal(o[name], &elements) != nil:
		return nil, errMalformed
	}
	for _, e := range elements {
		s, err := text(e)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// text reads a string: encoding/json alone would take null for one.
func text(value json.RawMessage) (s string, err error) {
	if value[0] != '"' || json.Unmarshal(value, &s) != nil {
		return "", errMalformed
	}
	return s, nil
}

// date reads whole seconds since 1970, from 1 to the end of the year 9999.
func (o object) date(name string) (time.Time, error) {
	if !o.has(name) {
		return time.Time{}, nil
	}
	const last = 253402300799
	seconds, err := strconv.ParseInt(string(o[name]), 10, 64)
	if err != nil || seconds < 1 || seconds > last {
		return time.Time{}, errMalformed
	}
	return time.Unix(seconds, 0), nil
}

// isTrue says whether the member is true, and not merely a word for it.
func (o object) isTrue(name string) bool { return string(o[name]) == "true" }
