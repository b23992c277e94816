package httpapi

import (
	"net/http"
	"strconv"

	"regent/leadership/wire"
)

// ok answers with v as JSON, or returns err. An error means that nothing was written.
func ok(w http.ResponseWriter, v any, err error) error {
	if err != nil {
		return err
	}
	body, err := wire.Marshal(v)
	return send(w, body, err)
}

// okLease is ok for a lease, which it keeps off the heap.
func okLease(w http.ResponseWriter, l *wire.Lease) error {
	body, err := wire.AppendLease(make([]byte, 0, usualReply), l)
	return send(w, body, err)
}

const (
	// usualReply is how many bytes the reply with a lease has, or a few more.
	usualReply = 640
	// shortReply is the most that net/http counts by itself: a longer reply is sent in chunks
	// unless it says how long it is.
	shortReply = 2048
)

// send answers with JSON, or returns err.
func send(w http.ResponseWriter, body []byte, err error) error {
	if err != nil {
		return err
	}
	body = append(body, '\n')
	h := w.Header()
	h["Content-Type"] = []string{wire.ContentType}
	if len(body) > shortReply {
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	w.Write(body) // an error means that the caller is gone
	return nil
}

// problem answers with the part of the error that the caller may know.
func (e *exchange) problem(requestID string, err error) {
	p := wire.NewProblem(err)
	p.RequestID = requestID
	e.code = p.Code
	p.Write(e, p)
}
