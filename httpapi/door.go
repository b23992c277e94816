package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"regent/leadership"
	"regent/leadership/wire"
)

// mount gives each door the path that it stands at, and all below it; a door at "/" gets that path
// alone.
func (a *api) mount(doors map[string]http.Handler) {
	for path, door := range doors {
		a.router.Handle(path, a.door(door))
		if path != "/" {
			a.router.Handle(path+"/*", a.door(door))
		}
	}
}

// door returns the handler of a door. It does for it what handle does for a call of the API, except
// for the checks of what a request may look like: a door speaks a protocol of its own.
func (a *api) door(h http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		id := requestID(r)
		setHeaders(w.Header(), id)
		e := &doorExchange{exchange: exchange{ResponseWriter: w, status: http.StatusOK}}
		err := a.keepPagesOut(r, !navigates(r))
		switch n := len(r.RequestURI); {
		case err != nil:
		case n > wire.MaxURI:
			err = refuse(wire.URITooLong, "a path and its query must not exceed %d bytes, this one has %d", wire.MaxURI, n)
		default:
			// the door may be a router of the same kind, which must not find this one in the
			// context
			ctx := context.WithValue(leadership.WithRequestID(r.Context(), id), chi.RouteCtxKey, nil)
			err = withoutPanic(func() error {
				h.ServeHTTP(e, r.WithContext(ctx))
				return nil
			})
		}
		if err != nil && !e.begun {
			e.problem(id, err)
		}
		a.logRequest(r, id, &e.exchange, err, time.Since(started))
		if err != nil && e.code == "" {
			panic(http.ErrAbortHandler) // the caller must not take half a reply for a whole one
		}
	}
}

// navigates reports whether a person follows a link. The page with the link learns nothing of the
// answer.
func navigates(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

// doorExchange knows whether its reply has begun.
type doorExchange struct {
	exchange
	begun bool
}

// WriteHeader implements http.ResponseWriter.
func (e *doorExchange) WriteHeader(status int) {
	e.begun = true
	e.exchange.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (e *doorExchange) Write(b []byte) (int, error) {
	e.begun = true
	return e.ResponseWriter.Write(b)
}
