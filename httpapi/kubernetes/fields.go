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

// schema is the part of a JSON schema that is checked: the fields of an object. Without fields it
// allows any value.
type schema struct {
	Properties map[string]schema `json:"properties"`
}

// leaseSchema returns the schema of a Lease.
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

// maxStrange is the most unknown or duplicate fields that an answer names.
const maxStrange = 10

// checkFields looks for unknown and duplicate fields in a JSON body of a Lease. The client's
// fieldValidation says whether they are refused or cause a warning.
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

// strange appends to found each unknown or duplicate field of the next value, up to maxStrange. at
// is the path to the value. d must read valid JSON of limited depth.
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
