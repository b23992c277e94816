package httpapi

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// Protocol is what agents and operators may ask for. A *leadership.Service is one.
type Protocol interface {
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

// Service is what the API calls: the protocol, and what an instance adds to it. An *instance.Instance is one.
type Service interface {
	Protocol

	// Read answers a reader as cheaply as it allows.
	Read(context.Context, leadership.ReadRequest) (leadership.Reading, error)
	// Await waits until the election is not as the reader knows it any more. news is false if the time is over first, and then there is no
	// reading.
	Await(ctx context.Context, r leadership.ReadRequest, wait time.Duration) (reading leadership.Reading, news bool, err error)
	// Watch and Feed are for streams: of one election, which is read too, and of all.
	Watch(context.Context, leadership.WatchRequest) (leadership.Reading, *instance.Watch, error)
	Feed(ctx context.Context, prefix string, after instance.Cursor) (*instance.Feed, error)
	// Census reads all elections whose names begin with the prefix.
	Census(ctx context.Context, prefix string) (leadership.Census, error)
	// Tick does what is left to do: it records the leases that ran out unseen, and announces what was left behind.
	Tick(context.Context) (expired, announced int, err error)
}

// Config says what an API stands on. Only Service is required.
type Config struct {
	Service Service
	// Log gets one line for each request: Debug, but Warn where the store or this instance was to blame for a while, and Error
	// where something is broken. Nil logs nothing.
	Log *slog.Logger
	// Ready says whether this instance can serve, and what is not as it should be though it can; nil means always and nothing. An error
	// without a code, such as wire.Draining, is told as StoreUnavailable.
	Ready func(context.Context) (degraded string, err error)
	// RequestTimeout bounds what a request may ask of the service, beside the time that it wants to wait: 10 s if it is zero.
	RequestTimeout time.Duration
	// StreamLimit is how long a stream of events lasts before it ends with a cursor, for its reader to resume: 270 s if it is zero, 30 s less
	// than what Cloud Run lets a request last unless told otherwise. A stream may end up to a tenth of it earlier.
	StreamLimit time.Duration
	// PingInterval is how often a stream with no news shows that it is alive: 15 s if it is zero.
	PingInterval time.Duration
	// StallTimeout is how long the reader of a stream may take to make room for what is sent to it, before it is cut off: 10 s if it is zero.
	StallTimeout time.Duration
}

// api is a Config at work.
type api struct {
	service Service
	log     *slog.Logger
	ready   func(context.Context) (string, error)
	timeout time.Duration
	limit   time.Duration // of a stream
	ping    time.Duration
	stall   time.Duration
	router  *chi.Mux
}

// New returns the API as a handler.
func New(c Config) http.Handler {
	a := &api{
		service: c.Service,
		log:     cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
		ready:   c.Ready,
		timeout: cmp.Or(c.RequestTimeout, 10*time.Second),
		limit:   cmp.Or(c.StreamLimit, 270*time.Second),
		ping:    cmp.Or(c.PingInterval, 15*time.Second),
		stall:   cmp.Or(c.StallTimeout, 10*time.Second),
		router:  chi.NewRouter(),
	}
	a.routes()
	return a.router
}

func (a *api) routes() {
	a.router.Use(middleware.GetHead)
	a.router.NotFound(a.handle(a.bounded(notFound)))
	a.router.MethodNotAllowed(a.handle(a.bounded(a.methodNotAllowed)))

	// No name has a colon: what follows one is a verb, and one that is not known is a path that is not known.
	const election = wire.PathElections + "/{election:[^:/]+}"
	a.waiting(http.MethodPost, election+wire.Acquire, a.acquire)
	a.route(http.MethodPost, election+wire.Renew, a.renew)
	a.route(http.MethodPost, election+wire.Release, a.release)
	a.route(http.MethodPost, election+wire.CheckToken, a.checkToken)
	a.route(http.MethodPost, wire.PathBatchRenew, a.batchRenew)
	a.route(http.MethodPost, wire.PathBatchCheckTokens, a.batchCheckTokens)
	a.route(http.MethodGet, wire.PathElections, a.list)
	a.waiting(http.MethodGet, election, a.get)
	a.route(http.MethodPut, election, a.configure)
	a.route(http.MethodDelete, election, a.delete)
	a.waiting(http.MethodGet, election+wire.Events, a.events)
	a.waiting(http.MethodGet, wire.PathEvents, a.allEvents)
	a.route(http.MethodPost, wire.PathTick, a.tick)
	a.route(http.MethodGet, wire.PathLive, live)
	a.route(http.MethodGet, wire.PathReady, a.readiness)
	a.route(http.MethodGet, wire.PathSpec, spec)
}

// route is for calls that are answered as soon as can be.
func (a *api) route(method, pattern string, h handler) { a.waiting(method, pattern, a.bounded(h)) }

// waiting is for calls that may wait for something to happen. They bound themselves what they ask of the service.
func (a *api) waiting(method, pattern string, h handler) {
	a.router.Method(method, pattern, a.handle(h))
}
