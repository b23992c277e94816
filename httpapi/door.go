package httpapi

import (
	"context"
	"net/http"
	"time"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// Door is another interface to the same service. The API names its requests, keeps pages of other
// origins out, answers panics and logs each request, as it does for its own. All else is left to
// the door: who calls, bodies, and the time that a call takes.
type Door struct {
	Handler http.Handler
	// Refuse answers with an error in the door's own form. nil answers with a problem document.
	Refuse func(w http.ResponseWriter, err error)
}

// Admit decides whether the body of a call may be read. It returns the context of the call, or why
// the call is refused. done must be called when the body is not needed any more. Of the Op it gets
// the Row, the election in the path, and the size of the body. The gates of the service decide
// again, when all of the call is known.
type Admit func(ctx context.Context, op instance.Op) (admitted context.Context, done func(), err error)

// Request asks for a request whose body may have at most so many bytes, and counts for op.Body at
// least. It returns the request to go on with. A nil Admit lets all in.
func (a Admit) Request(w http.ResponseWriter, r *http.Request, op instance.Op, most int64) (admitted *http.Request, done func(), err error) {
	if a == nil {
		return r, func() {}, nil
	}
	bytes := r.ContentLength
	if bytes < 0 || bytes > most {
		bytes = most
	}
	op.N, op.Body = 1, max(op.Body, bytes)
	ctx, done, err := a(r.Context(), op)
	if err == nil {
		return r.WithContext(ctx), done, nil
	}
	if bytes > wire.MaxBody {
		w.Header().Set("Connection", "close") // else net/http reads the body before it sends the answer
	}
	return nil, nil, err
}

// door returns the http.Handler of a door.
func (a *api) door(d Door) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		id := requestID(r)
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
			panic(http.ErrAbortHandler) // the reader must not take what it has for all
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

// WriteHeader implements http.ResponseWriter.
func (e *doorExchange) WriteHeader(status int) {
	e.streaming = true
	e.exchange.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (e *doorExchange) Write(p []byte) (int, error) {
	e.streaming = true
	return e.exchange.Write(p)
}
