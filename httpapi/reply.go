package httpapi

import (
	"net/http"

	"regent/leadership/wire"
)

// ok answers with v as JSON. An error means that nothing was written.
func ok(w http.ResponseWriter, v any) error {
	body, err := wire.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", wire.ContentType)
	w.Write(append(body, '\n')) // an error means that the caller is gone
	return nil
}

// problem answers with the part of the error that the caller may know.
func (e *exchange) problem(requestID string, err error) {
	p := wire.NewProblem(err)
	p.RequestID = requestID
	e.code = p.Code
	p.Write(e, p)
}
