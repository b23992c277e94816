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
	w.Write(body) // an error means that the caller has left
	return nil
}

// encode returns v as JSON and a line feed.
func encode(v any) ([]byte, error) {
	const usual = 640      // a lease has about 500 bytes
	switch v := v.(type) { // no interface: types that embed a lease would satisfy it too
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

// problem answers with the part of the error that the caller may know.
func (e *exchange) problem(requestID string, err error) {
	p := wire.NewProblem(err)
	p.RequestID = requestID
	e.code = p.Code
	if p.RetryAfterMs > 0 {
		const second = 1000
		e.Header().Set("Retry-After", strconv.FormatInt((p.RetryAfterMs+second-1)/second, 10))
	}
	reply(e, wire.ProblemType, p.Status, p) // a problem can always be encoded
}
