package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-chi/chi/v5"

	"regent/leadership"
	"regent/leadership/wire"
)

// handler answers a request, or returns the error to answer it with.
type handler func(http.ResponseWriter, *http.Request) error

// offer is a kind of reply that a route has. A route has several if the caller may choose by the
// header Accept.
type offer struct {
	contentType string // "" if Accept does not matter
	answer      handler
	within      time.Duration // the time for its calls of the service; 0: the handler bounds them
	conditional bool          // the call takes If-Match
	ifNew       bool          // and If-None-Match, although it is no read
}

// admitting calls Config.Admit before the body is read.
func (a *api) admitting(row *wire.Row, h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		r, done, err := a.admit.Request(w, r, wire.Admission{Row: row, Election: election(r)}, row.MaxBody())
		if err != nil {
			return err
		}
		defer done()
		if row.Waits {
			r.Body = dropped{r.Body, done}
		}
		return h(w, r)
	}
}

// dropped is the body of a call that may wait: it is dropped once it is decoded.
type dropped struct {
	io.ReadCloser
	done func()
}

// patience gives a request the time wait, and then RequestTimeout to be answered. It also extends
// the deadlines of the connection, which are meant for calls that are answered at once. The context
// still ends if the caller leaves.
func (a *api) patience(w http.ResponseWriter, r *http.Request, wait time.Duration) (context.Context, context.CancelFunc) {
	if wait > 0 {
		connection := http.NewResponseController(w)
		connection.SetReadDeadline(time.Time{}) // an error of these two calls means that the connection has no deadlines
		connection.SetWriteDeadline(time.Now().Add(wait + a.timeout + writeTimeout))
	}
	return context.WithTimeout(r.Context(), wait+a.timeout)
}

// handle returns the http.Handler of a route. It names the request, makes the checks that all
// routes share, answers an error or a panic with a problem document, and logs the request once.
func (a *api) handle(offers []offer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		id := wire.RequestID(r.Header)
		setHeaders(w.Header(), id)
		e := &exchange{ResponseWriter: w, status: http.StatusOK}
		if a.reply != nil {
			e.hold = func(bytes int) (func(), error) { return a.hold(r, bytes) }
		}
		err := a.keepPagesOut(r, false)
		if err == nil {
			err = answer(e, r, id, offers)
		}
		if err != nil && !e.streaming {
			e.problem(id, err)
		}
		a.logRequest(r, id, e, err, time.Since(started))
	}
}

// setHeaders sets the headers of every reply. no-store, because a lease ends sooner than a cache
// would know.
func setHeaders(h http.Header, requestID string) {
	values := [...]string{requestID, "no-store", "nosniff"} // one allocation, not three
	h[wire.RequestIDHeader] = values[0:1:1]
	h["Cache-Control"] = values[1:2:2]
	h["X-Content-Type-Options"] = values[2:3:3]
}

// panicked is the error of a handler that panicked.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// orPanicked makes an error of a panic. It panics on to abort the reply.
func orPanicked(err error, value any) error {
	switch value {
	case nil:
		return err
	case http.ErrAbortHandler:
		panic(value)
	}
	return &panicked{value, debug.Stack()}
}

// answer makes the checks that are the same for all requests and then calls the handler of the
// offer that the caller likes best. A panic becomes an error.
func answer(w http.ResponseWriter, r *http.Request, id string, offers []offer) (err error) {
	defer func() { err = orPanicked(err, recover()) }()
	o, err := admit(r, offers)
	if err != nil {
		return err
	}
	ctx := leadership.WithRequestID(r.Context(), id)
	if o.within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.within)
		defer cancel()
	}
	return o.answer(w, r.WithContext(ctx))
}

// exchange remembers how a request was answered.
type exchange struct {
	http.ResponseWriter
	status int
	code   leadership.Code

	hold      func(bytes int) (done func(), err error) // admits a large reply; nil admits all
	streaming bool                                     // the reply has begun: it is too late for a problem document
	causes    []error                                  // of parts of a batch that failed through no fault of the caller
}

func (e *exchange) WriteHeader(status int) {
	e.status = status
	e.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (e *exchange) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// statusClientGone is logged for a caller that left before the answer. It is never sent.
const statusClientGone = 499

// logRequest writes the request's line. It has the route and not the path, which a caller can fill
// with anything.
func (a *api) logRequest(r *http.Request, id string, e *exchange, err error, took time.Duration) {
	status := e.status
	if err != nil && errors.Is(context.Cause(r.Context()), context.Canceled) { // draining has a cause of its own
		status = statusClientGone
	}
	severity := level(status, e.causes)
	if !a.log.Enabled(r.Context(), severity) && err == nil {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", r.Method),
		slog.String("route", pathOf(chi.RouteContext(r.Context()).RoutePattern())),
		slog.Int("status", status),
		slog.String("requestId", id),
		slog.Float64("tookMs", float64(took.Microseconds())/1000),
	}
	if e.code != "" {
		attrs = append(attrs, slog.String("code", string(e.code)))
	}
	if cause := errors.Join(append(e.causes, err)...); cause != nil {
		attrs = append(attrs, slog.Any("cause", cause))
	}
	if e.code == wire.Draining {
		severity = slog.LevelDebug // thousands of callers may be waiting when an instance stops
	}
	var p *panicked
	if errors.As(err, &p) {
		severity = slog.LevelError // a stream has sent its status before
		attrs = append(attrs, slog.String("stack", string(p.stack)))
	}
	a.log.LogAttrs(r.Context(), severity, "request", attrs...)
}

func level(status int, causes []error) slog.Level {
	switch {
	case status == http.StatusInternalServerError:
		return slog.LevelError
	case status > http.StatusInternalServerError, len(causes) > 0:
		return slog.LevelWarn
	}
	return slog.LevelDebug
}
