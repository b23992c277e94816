package httpapi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-chi/chi/v5"

	"regent/leadership"
	"regent/leadership/wire"
)

// handler answers a request, or returns why it did not.
type handler func(http.ResponseWriter, *http.Request) error

// bounded gives h so much time at the service.
func (a *api) bounded(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), a.timeout)
		defer cancel()
		return h(w, r.WithContext(ctx))
	}
}

// patience lets a request wait for so long, and then be answered: of a context, and of the connection, whose deadlines are for calls that
// are answered at once. The other side is noticed when it goes.
func (a *api) patience(w http.ResponseWriter, r *http.Request, wait time.Duration) (context.Context, context.CancelFunc) {
	if wait > 0 {
		connection := http.NewResponseController(w)
		connection.SetReadDeadline(time.Time{}) // an error of these two means that the connection has none
		connection.SetWriteDeadline(time.Now().Add(wait + a.timeout + writeTimeout))
	}
	return context.WithTimeout(r.Context(), wait+a.timeout)
}

// handle makes h an http.Handler: it names the request, checks what is the same for all, answers an error or a panic with a problem, and
// logs the request once.
func (a *api) handle(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		id := requestID(r)
		setHeaders(w.Header(), id)
		e := &exchange{ResponseWriter: w, status: http.StatusOK}
		err := guarded(h)(e, r.WithContext(leadership.WithRequestID(r.Context(), id)))
		if err != nil && !e.streaming {
			e.problem(id, err)
		}
		a.logRequest(r, id, e, err, time.Since(started))
	}
}

// requestID is the caller's id if it can be used as it is, or a fresh one.
func requestID(r *http.Request) string {
	if ids := r.Header.Values(wire.RequestIDHeader); len(ids) == 1 && wire.ValidRequestID(ids[0]) {
		return ids[0]
	}
	return rand.Text()
}

// setHeaders sets what every reply has. no-store, because a lease is over sooner than a cache would know.
func setHeaders(h http.Header, requestID string) {
	h.Set(wire.RequestIDHeader, requestID)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}

// panicked is the error of a handler that did not come to its end.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// guarded is h after the checks that are the same for all, with a panic as an error.
func guarded(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) (err error) {
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler:
				panic(v)
			default:
				err = &panicked{v, debug.Stack()}
			}
		}()
		if err := admit(r); err != nil {
			return err
		}
		return h(w, r)
	}
}

// exchange remembers what was answered.
type exchange struct {
	http.ResponseWriter
	status int
	code   leadership.Code

	streaming bool    // the reply has begun, and an error can be told in it no more
	causes    []error // of parts of a batch that failed by no fault of the caller
}

// WriteHeader remembers the status.
func (e *exchange) WriteHeader(status int) {
	e.status = status
	e.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (e *exchange) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// statusClientGone is what a log says of a request whose caller did not wait for the answer. It is never sent.
const statusClientGone = 499

// logRequest writes the request's line. Its route stands for its path, which a caller can fill with anything.
func (a *api) logRequest(r *http.Request, id string, e *exchange, err error, took time.Duration) {
	status := e.status
	if err != nil && errors.Is(context.Cause(r.Context()), context.Canceled) { // a server that drains gives a cause of its own
		status = statusClientGone
	}
	severity := level(status, e.causes)
	if !a.log.Enabled(r.Context(), severity) && err == nil {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", r.Method),
		slog.String("route", chi.RouteContext(r.Context()).RoutePattern()),
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
		severity = slog.LevelDebug // thousands may wait when an instance is told to stop
	}
	var p *panicked
	if errors.As(err, &p) {
		severity = slog.LevelError // in a stream the status was sent before
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
