package kubernetes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// schema is what is looked at of a JSON schema: the fields of an object. Without any, it is for
// everything.
type schema struct {
	Properties map[string]schema `json:"properties"`
}

// leaseSchema returns that of a Lease.
func leaseSchema() schema {
	var document struct {
		Components struct {
			Schemas map[string]schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(openAPI, &document); err != nil {
		panic(err) // the document is a part of the program
	}
	return document.Components.Schemas["io.k8s.api.coordination.v1.Lease"]
}

// maxStrange is how many strange fields an answer names.
const maxStrange = 10

// checkFields looks for fields in a body, which is JSON, that a Lease does not have, or that it has
// twice. The client's fieldValidation says whether the answer refuses them or warns of them.
func (d *Door) checkFields(w http.ResponseWriter, r *http.Request, body []byte) error {
	mode := cmp.Or(r.URL.Query().Get("fieldValidation"), "Warn")
	switch mode {
	case "Strict", "Warn":
	case "Ignore":
		return nil
	default:
		return refuse(http.StatusUnprocessableEntity, "", "fieldValidation: Unsupported value: %q: supported values: \"Ignore\", \"Strict\", \"Warn\"", cut(mode))
	}
	found := d.fields.strange(json.NewDecoder(bytes.NewReader(body)), nil)
	if mode == "Strict" && len(found) > 0 {
		return refuse(http.StatusBadRequest, "", "strict decoding error: %s", strings.Join(found, ", "))
	}
	for _, text := range found {
		warn(w, text)
	}
	return nil
}

// warn puts a warning into the answer, which kubectl shows.
func warn(w http.ResponseWriter, text string) {
	w.Header().Add("Warning", "299 - "+strconv.QuoteToASCII(text))
}

// strange adds to found each field of the next value that the schema does not have, or that the
// value has twice, until there are maxStrange. at are the names on the way to the value. Call it
// with valid JSON that is not deep.
func (s schema) strange(d *json.Decoder, found []string, at ...string) []string {
	switch token, _ := d.Token(); token {
	case json.Delim('['):
		for len(found) < maxStrange && d.More() {
			found = schema{}.strange(d, found, at...)
		}
		d.Token()
	case json.Delim('{'):
		seen := map[string]bool{}
		for len(found) < maxStrange && d.More() {
			token, _ := d.Token()
			name, _ := token.(string)
			field := append(at, name)
			below, known := s.Properties[name]
			switch {
			case seen[name]:
				found = append(found, fmt.Sprintf("duplicate field %q", cut(strings.Join(field, "."))))
			case !known && s.Properties != nil:
				found = append(found, fmt.Sprintf("unknown field %q", cut(strings.Join(field, "."))))
			}
			seen[name] = true
			found = below.strange(d, found, field...)
		}
		d.Token()
	}
	return found
}
