package httpapi

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"regent/httpapi/wire"
	"regent/leadership"
)

// Service is what the API calls. A *leadership.Service is one.
type Service interface {
	Acquire(context.Context, leadership.AcquireRequest) (leadership.Grant, error)
	Renew(context.Context, leadership.LeaseRequest) (leadership.Lease, error)
	BatchRenew(context.Context, []leadership.LeaseRequest) ([]leadership.Result, error)
	Release(context.Context, leadership.LeaseRequest) (leadership.Lease, error)
	CheckToken(context.Context, leadership.TokenCheck) (leadership.Lease, error)
	BatchCheckTokens(context.Context, []leadership.TokenCheck) ([]leadership.Result, error)
	Get(context.Context, leadership.Election) (leadership.Lease, error)
	List(context.Context, leadership.ListRequest) (leadership.Page, error)
	Events(context.Context, leadership.EventsRequest) ([]leadership.Event, error)
	Configure(context.Context, leadership.ConfigureRequest) (leadership.Lease, error)
	Delete(context.Context, leadership.DeleteRequest) (leadership.Lease, error)
}

// Config says what an API stands on. Only Service is required.
type Config struct {
	Service Service
	// Log gets one line for each request: Debug, but Warn where the store or this instance was to blame for a while, and Error
	// where something is broken. Nil logs nothing.
	Log *slog.Logger
	// Ready says whether this instance can serve; nil means always. An error without a code, such as wire.Draining, is told as
	// StoreUnavailable.
	Ready func(context.Context) error
	// RequestTimeout bounds what a request may ask of the service: 10 s if it is zero.
	RequestTimeout time.Duration
}

// api is a Config at work.
type api struct {
	service Service
	log     *slog.Logger
	ready   func(context.Context) error
	timeout time.Duration
	router  *chi.Mux
}

// New returns the API as a handler.
func New(c Config) http.Handler {
	a := &api{
		service: c.Service,
		log:     cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
		ready:   c.Ready,
		timeout: cmp.Or(c.RequestTimeout, 10*time.Second),
		router:  chi.NewRouter(),
	}
	a.routes()
	return a.router
}

func (a *api) routes() {
	a.router.Use(middleware.GetHead)
	a.router.NotFound(a.handle(notFound))
	a.router.MethodNotAllowed(a.handle(a.methodNotAllowed))

	// No name has a colon: what follows one is a verb, and one that is not known is a path that is not known.
	const election = wire.PathElections + "/{election:[^:/]+}"
	a.route(http.MethodPost, election+wire.Acquire, a.acquire)
	a.route(http.MethodPost, election+wire.Renew, a.renew)
	a.route(http.MethodPost, election+wire.Release, a.release)
	a.route(http.MethodPost, election+wire.CheckToken, a.checkToken)
	a.route(http.MethodPost, wire.PathBatchRenew, a.batchRenew)
	a.route(http.MethodPost, wire.PathBatchCheckTokens, a.batchCheckTokens)
	a.route(http.MethodGet, wire.PathElections, a.list)
	a.route(http.MethodGet, election, a.get)
	a.route(http.MethodPut, election, a.configure)
	a.route(http.MethodDelete, election, a.delete)
	a.route(http.MethodGet, election+wire.Events, a.events)
	a.route(http.MethodGet, wire.PathLive, live)
	a.route(http.MethodGet, wire.PathReady, a.readiness)
	a.route(http.MethodGet, wire.PathSpec, spec)
}

func (a *api) route(method, pattern string, h handler) {
	a.router.Method(method, pattern, a.handle(h))
}
