package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	"regent/leadership/wire"
)

// reply writes v as JSON. An error means that nothing was written.
func reply(w http.ResponseWriter, contentType string, status int, v any) error {
	body, err := encode(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	w.Write(body) // it fails when the caller is gone, and then there is nobody to tell
	return nil
}

// encode is v as JSON, and a line.
func encode(v any) ([]byte, error) {
	const usual = 640      // a lease has some 500 bytes
	switch v := v.(type) { // not by an interface: whatever has a lease in it would satisfy that too
	case wire.Lease:
		return append(v.Append(make([]byte, 0, usual)), '\n'), nil
	case wire.Grant:
		return append(v.Append(make([]byte, 0, usual)), '\n'), nil
	case wire.Results:
		return append(v.Append(nil), '\n'), nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

func ok(w http.ResponseWriter, v any) error { return reply(w, wire.ContentType, http.StatusOK, v) }

// problem answers with what the caller may know of the error.
func (e *exchange) problem(requestID string, err error) {
	p := wire.NewProblem(err)
	p.RequestID = requestID
	e.code = p.Code
	if p.RetryAfterMs > 0 {
		const second = 1000
		e.Header().Set("Retry-After", strconv.FormatInt((p.RetryAfterMs+second-1)/second, 10))
	}
	reply(e, wire.ProblemType, p.Status, p) // a problem can be encoded
}
