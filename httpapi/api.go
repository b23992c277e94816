package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"regent/leadership/instance"
	"regent/leadership/statement"
	"regent/leadership/wire"
)

// Config configures an API. Only Service is required.
type Config struct {
	// Service makes all decisions. Put gates before it with instance.Guard: the API itself admits
	// every caller.
	Service instance.Service
	// Log gets one line per request: Debug by default, Warn for a transient failure of the store or
	// this instance, and Error for a defect. Nil logs nothing.
	Log *slog.Logger
	// Ready reports whether this instance can serve, and the reason if it is degraded. nil means
	// always ready. An error without a code is answered as StoreUnavailable.
	Ready func(context.Context) (degraded string, err error)
	// Hosts reports whether a request may be sent to a host, as its header Host names it; see
	// LocalHosts. nil allows all: right only if callers are authenticated.
	Hosts func(host string) bool
	// Admit, if it is not nil, is called before the body of a call is read. (The body of an acquire
	// of up to 2 KiB may have been read before, by Server.)
	Admit wire.Admit
	// Reply, if it is not nil, is called before a reply of more than 64 KiB is written. done is
	// called once the reply is written, or the reader has gone.
	Reply func(ctx context.Context, bytes int64) (done func(), err error)
	// Statements signs statements for leaders; with nil the server signs none.
	Statements *statement.Issuer
	// Doors are mounted beside the API, by their paths: each serves its path and all paths below
	// it, but "/" itself alone.
	Doors map[string]Door
	// RequestTimeout bounds the calls of the service that one request makes, in addition to the
	// time that it asks to wait: 10 s if it is zero.
	RequestTimeout time.Duration
	// StreamLimit is how long a stream lasts before it ends with a cursor, from which its reader
	// resumes: 270 s if it is zero, 30 s less than the default request limit of Cloud Run. A stream
	// may end up to a tenth of it earlier.
	StreamLimit time.Duration
	// PingInterval is how often a silent stream sends a comment: 15 s if it is zero.
	PingInterval time.Duration
	// StallTimeout is how long a stream waits for a reader that does not read, before it closes the
	// connection: 10 s if it is zero.
	StallTimeout time.Duration
}

type api struct {
	service instance.Service
	log     *slog.Logger
	ready   func(context.Context) (string, error)
	hosts   func(string) bool
	admit   wire.Admit
	reply   func(context.Context, int64) (func(), error)
	issuer  *statement.Issuer
	origins http.CrossOriginProtection // trusts no other origin
	timeout time.Duration
	limit   time.Duration // of a stream
	ping    time.Duration
	stall   time.Duration
	encoded encoded
	router  *chi.Mux
}

// New returns the API as a handler. It panics if a verb has a row and no handler, or a handler and
// no row; see wire.Verbs.
func New(c Config) http.Handler {
	a := &api{
		service: c.Service,
		log:     cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
		ready:   c.Ready,
		hosts:   c.Hosts,
		admit:   c.Admit,
		reply:   c.Reply,
		issuer:  c.Statements,
		timeout: cmp.Or(c.RequestTimeout, 10*time.Second),
		limit:   cmp.Or(c.StreamLimit, 270*time.Second),
		ping:    cmp.Or(c.PingInterval, 15*time.Second),
		stall:   cmp.Or(c.StallTimeout, 10*time.Second),
		router:  chi.NewRouter(),
	}
	if err := a.route(wire.Verbs(), a.handlers()); err != nil {
		panic(err)
	}
	for path, door := range c.Doors {
		a.router.Handle(path, a.door(door))
		if path != "/" {
			a.router.Handle(path+"/*", a.door(door))
		}
	}
	return a.router
}

type handlers map[wire.Verb]handler

// handlers returns the handler of each verb. Those with a Body are commands, but for a release.
func (a *api) handlers() handlers {
	all := handlers{
		wire.VerbAcquire:          a.acquire,
		wire.VerbRenew:            a.renew,
		wire.VerbCheckToken:       a.checkToken,
		wire.VerbBatchRenew:       a.batchRenew,
		wire.VerbBatchCheckTokens: a.batchCheckTokens,
		wire.VerbRead:             a.get,
		wire.VerbList:             a.list,
		wire.VerbEvents:           a.history,
		wire.VerbWatch:            a.watch,
		wire.VerbWatchAll:         a.allEvents,
		wire.VerbOverrides:        look(a, instance.Service.Overrides, wire.NewOverrides),
		wire.VerbExplain:          a.explain,
		wire.VerbDelete:           a.delete,
		wire.VerbJoin:             a.join,
		wire.VerbLeave:            a.leave,
		wire.VerbMembers:          look(a, instance.Service.Members, wire.NewMembers),
		wire.VerbAcknowledgement:  a.awaitAcknowledgement,
		wire.VerbDelegate:         a.delegate,
		wire.VerbTree:             look(a, instance.Service.Tree, wire.NewTree),
		wire.VerbJournal:          a.journal,
		wire.VerbFollowJournal:    a.followJournal,
		wire.VerbTick:             a.tick,
		wire.VerbKeySet:           a.keySet,
		wire.VerbLive:             live,
		wire.VerbReady:            a.readiness,
		wire.VerbSpec:             spec(),

		wire.VerbPutCheckpoint: write(a, largest{wire.MaxCheckpointBody, "put larger data elsewhere, and send its uri"},
			wire.CheckpointRequest.Leadership, instance.Service.PutCheckpoint),
		wire.VerbCheckpoint: look(a, instance.Service.Checkpoint, same),
		wire.VerbOpenJournal: write(a, largest{wire.MaxBody, "send the lease alone"},
			wire.Holder.Leadership, instance.Service.OpenJournal),
		wire.VerbAppendJournal: write(a, largest{wire.MaxAppendBody, "append the entries in parts"},
			wire.AppendRequest.Leadership, instance.Service.AppendJournal),
		wire.VerbSnapshotJournal: write(a, largest{wire.MaxSnapshotBody, "put larger data elsewhere, and send its uri"},
			wire.SnapshotRequest.Leadership, instance.Service.SnapshotJournal),
		wire.VerbReadSnapshot: look(a, instance.Service.ReadSnapshot, same),
		wire.VerbBeginEffect: write(a, largest{wire.MaxBody, "an effect's id has at most 128 bytes"},
			wire.BeginRequest.Leadership, instance.Service.BeginEffect),
		wire.VerbFinishEffect: write(a, largest{wire.MaxBody, "put a larger result elsewhere, and send where it is"},
			wire.FinishRequest.Leadership, instance.Service.FinishEffect),
		wire.VerbEffects: look(a, instance.Service.Effects, same),
		wire.VerbPropose: write(a, largest{wire.MaxBody, "put larger data elsewhere, and propose where it is"},
			wire.ProposeRequest.Leadership, instance.Service.Propose),
		wire.VerbDecide: write(a, largest{wire.MaxBody, "say more elsewhere, and note where"},
			wire.DecideRequest.Leadership, instance.Service.Decide),
		wire.VerbProposals: look(a, instance.Service.Proposals, same),
	}
	for _, row := range wire.Verbs() {
		if row.Body != nil {
			all[row.Verb] = a.command(row)
		}
	}
	all[wire.VerbRelease] = a.release
	return all
}

// route gives each row its handler. It returns an error for a row and a handler that do not fit.
func (a *api) route(rows []wire.Row, all handlers) error {
	a.router.Use(middleware.GetHead)
	refused := func(h handler) []offer {
		return []offer{{wire.ContentType, h, 0, true, false}, {wire.StreamType, h, 0, true, false}}
	}
	a.router.NotFound(a.handle(refused(notFound)))
	a.router.MethodNotAllowed(a.handle(refused(a.methodNotAllowed)))

	routes := map[[2]string][]offer{} // by method and path
	for _, row := range rows {
		h, ok := all[row.Verb]
		if err := check(row, ok); err != nil {
			return err
		}
		within := a.timeout
		if row.Waits || row.Large {
			within = 0
		}
		if a.admit != nil && (row.Method == http.MethodPost || row.Method == http.MethodPut) {
			h = a.admitting(&row, h)
		}
		route := [2]string{row.Method, row.Path}
		routes[route] = append(routes[route], offer{row.Type, h, within, row.Conditional, row.Conditional && row.Creates})
	}
	for verb := range all {
		if !slices.ContainsFunc(rows, func(r wire.Row) bool { return r.Verb == verb }) {
			return fmt.Errorf("httpapi: verb %q has a handler and no row in wire.Verbs", verb)
		}
	}
	for route, offers := range routes {
		a.router.Method(route[0], pattern(route[1]), a.handle(offers))
	}
	return nil
}

// check refuses a row without a handler, and a row that would admit every caller by mistake.
func check(row wire.Row, handled bool) error {
	switch {
	case !handled:
		return fmt.Errorf("httpapi: verb %q has a row in wire.Verbs and no handler", row.Verb)
	case strings.HasPrefix(row.Path, wire.PathGuarded) && (len(row.Roles) == 0 || row.Cost == ""):
		return fmt.Errorf("httpapi: verb %q needs roles and a cost, because its path begins with %s", row.Verb, wire.PathGuarded)
	}
	return nil
}

// pattern returns the router's form of a row's path. The name of an election has no colon, so a
// verb follows the first one. The id of a candidate may have colons, so its verb is the end of the
// parameter.
func pattern(path string) string {
	return strings.NewReplacer("{election}", "{election:[^:/]+}", "{candidate}"+wire.Explain, "{candidate:[^/]+"+wire.Explain+"}").Replace(path)
}

// pathOf returns the path that has the pattern.
func pathOf(pattern string) string {
	return strings.NewReplacer("{election:[^:/]+}", "{election}", "{candidate:[^/]+"+wire.Explain+"}", "{candidate}"+wire.Explain).Replace(pattern)
}
