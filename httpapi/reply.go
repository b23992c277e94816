package httpapi

import (
	"fmt"
	"net/http"
	"strconv"

	"regent/leadership"
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

// okLease is ok for a lease, without an allocation.
func okLease(w http.ResponseWriter, l *wire.Lease) error {
	body, err := wire.AppendLease(make([]byte, 0, usualReply), l)
	return send(w, body, err)
}

const (
	// usualReply is a little more than the size of most replies with a lease, in bytes.
	usualReply = 640
	// shortReply is the longest reply whose length net/http sets by itself: a longer one is sent in
	// chunks unless it has a Content-Length.
	shortReply = 2048
	// largeReply is the memory that a connection may take anyway.
	largeReply = connectionMemory
)

// send answers with JSON, or returns err.
func send(w http.ResponseWriter, body []byte, err error) error {
	if err != nil {
		return err
	}
	body = append(body, '\n')
	if e, ok := w.(*exchange); ok && e.hold != nil && len(body) > largeReply {
		done, err := e.hold(len(body))
		if err != nil {
			return err
		}
		defer done()
	}
	h := w.Header()
	h["Content-Type"] = []string{wire.ContentType}
	if len(body) > shortReply {
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	w.Write(body) // an error means that the caller is gone
	return nil
}

// hold asks for room for a large reply. If there is none, a change is answered with OutcomeUnknown:
// it was done, and its caller repeats it as after a lost reply.
func (a *api) hold(r *http.Request, bytes int) (done func(), err error) {
	done, err = a.reply(r.Context(), int64(bytes))
	if err != nil && r.Method != http.MethodGet && r.Method != http.MethodHead {
		err = fmt.Errorf("httpapi: the reply of %d bytes: %w: %v", bytes, leadership.OutcomeUnknown, err)
	}
	return done, err
}

// problem answers with the part of the error that the caller may know.
func (e *exchange) problem(requestID string, err error) {
	p := wire.NewProblem(err)
	p.RequestID = requestID
	e.code = p.Code
	p.Write(e, p)
}
