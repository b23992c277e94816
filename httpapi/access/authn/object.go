package authn

import (
	"encoding/base64"
	"errors"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object of a token. Its methods return the zero value for a missing member.
type object map[string]jsontext.Value

// errMalformed is the only error about a document: an error of a JSON decoder might repeat a
// secret.
var errMalformed = errors.New("malformed")

// readObject reads a part of a token: base64url without padding, and in it one JSON object in
// UTF-8. Duplicate names are an error, at any depth.
func readObject(part string) (object, error) {
	document, err := base64.RawURLEncoding.Strict().DecodeString(part)
	var o object
	if err != nil || json.Unmarshal(document, &o) != nil || o == nil {
		return nil, errMalformed
	}
	return o, nil
}

func (o object) has(name string) bool {
	_, ok := o[name]
	return ok
}

func (o object) text(name string) (string, error) {
	if !o.has(name) {
		return "", nil
	}
	return text(o[name])
}

func (o object) texts(name string) (all []string, err error) {
	var elements []jsontext.Value
	switch {
	case !o.has(name):
		return nil, nil
	case o[name].Kind() != jsontext.KindBeginArray:
		elements = []jsontext.Value{o[name]}
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

// text reads a string. It refuses null, which package json accepts.
func text(value jsontext.Value) (s string, err error) {
	if value.Kind() != jsontext.KindString || json.Unmarshal(value, &s) != nil {
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

// isTrue reports whether the member is true. The string "true" is not.
func (o object) isTrue(name string) bool { return o[name].Kind() == jsontext.KindTrue }
