package httpapi

import (
	"net/http"
	"strconv"

	"regent/leadership/wire"
)

// reply writes v as JSON. An error means that nothing was written.
func reply(w http.ResponseWriter, contentType string, status int, v any) error {
	body, err := wire.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	w.Write(append(body, '\n')) // an error means that the caller is gone
	return nil
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
