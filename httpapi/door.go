package httpapi

import (
	"net/http"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// Door is another interface to the same service. As for its own requests, the API gives each
// request an id, refuses pages of other origins, answers panics and logs. The door does the rest:
// authentication, bodies, and the time limits of calls.
type Door struct {
	Handler http.Handler
	// Refuse answers with an error in the door's own form. nil answers with a problem document.
	Refuse func(w http.ResponseWriter, err error)
}

func (a *api) door(d Door) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		id := wire.RequestID(r.Header)
		setHeaders(w.Header(), id)
		e := &doorExchange{exchange: exchange{ResponseWriter: w, status: http.StatusOK}}
		err := a.keepPagesOut(r, true)
		if err == nil {
			err = checkURI(r)
		}
		if err == nil {
			err = d.serve(e, r.WithContext(leadership.WithRequestID(r.Context(), id)))
		}
		begun := e.streaming
		switch {
		case err == nil, begun:
		case d.Refuse != nil:
			e.code = wire.NewProblem(err).Code
			d.Refuse(e, err)
		default:
			e.problem(id, err)
		}
		a.logRequest(r, id, &e.exchange, err, time.Since(started))
		if err != nil && begun {
			panic(http.ErrAbortHandler) // so that the reader notices that the reply is incomplete
		}
	}
}

// serve calls the handler. A panic becomes an error.
func (d Door) serve(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() { err = orPanicked(err, recover()) }()
	d.Handler.ServeHTTP(w, r)
	return nil
}

// doorExchange knows that a reply has begun.
type doorExchange struct {
	exchange
}

func (e *doorExchange) WriteHeader(status int) {
	e.streaming = true
	e.exchange.WriteHeader(status)
}

func (e *doorExchange) Write(p []byte) (int, error) {
	e.streaming = true
	return e.exchange.Write(p)
}
