package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"regent/cmd/regent/internal/cloud"
	"regent/httpapi"
	"regent/httpapi/access/authz"
	"regent/httpapi/dashboard"
	"regent/httpapi/kubernetes"
	"regent/httpapi/mcp"
	"regent/httpapi/timing"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/instance/pubsub"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/leadership/telemetry"
	"regent/leadership/wire"
	"regent/store"
)

func (c *cli) serveCommand() *cobra.Command {
	var s serviceSettings
	cmd := &cobra.Command{
		Use:   "serve [--listen HOST:PORT] [--store STORE] [--events TOPIC] [--members TOPIC]",
		Short: "Run the service",
		Long: `Run the service until SIGINT or SIGTERM. Calls in progress may finish; a second signal stops it at once. If the store
fails for good, serve exits with code 5, for a supervisor to restart it.

Stores:
  memory:                                      in memory, lost when the process ends
  file:PATH                                    one local folder, for one process
  firestore:PROJECT[/DATABASE]                 Firestore
  spanner:projects/P/instances/I/databases/D   Spanner; create the tables with 'regent admin migrate'

Events:
  none                                         events stay in this process; right for memory: and file:
  projects/P/topics/T                          a Pub/Sub topic for the instances on one store, and for your own subscriptions

Members:
  none                                         each instance knows only the members that call it; right for one instance
  projects/P/topics/T                          a Pub/Sub topic of its own, over which the instances tell each other

Who may call:
  --auth none                                  every program on this machine and, of pages in a browser, the dashboard; the service
                                               answers only under IP addresses, localhost and the names of --allow-host
  --auth platform                              callers that Cloud Run's IAM admits, as the access file allows
  --auth oidc                                  callers with a credential (a JWT, RS256) of an issuer for an audience, as the access file allows
  --iap-audience, with either                  also people whose browser comes through Google's Identity-Aware Proxy; where a
                                               request has its assertion, that alone says who calls

Doors, beside REST:
  /ui                                          the dashboard, unless --ui=false
  /apis, with --kubernetes                     Leases, for kubectl and Kubernetes clients; see 'regent kubeconfig'
  /mcp, with --mcp                             tools for language models; 'regent mcp' serves the same over stdio

Peers are other Regent services, such as those of regions for a global one. A candidate here may name a lease that it
holds at a peer ('regent acquire --via'); its lease here then ends no later than that one. This service calls :checkToken
of the peer, which must grant it the right to read; --peer-audience and --peer-id-token-file give it an identity there.

Statements: a leader that asks for it gets a signed statement that it holds its lease, which others verify offline ('regent
verify', SERVER/.well-known/jwks.json). Keys are rotated by --statement-key NEW,OLD, after OLD,NEW for five minutes.

With --tls-cert and --tls-key, PEM files, it serves HTTPS (TLS 1.2 or later, HTTP/2). Changed files are used within seconds,
without a restart.

OpenTelemetry's variables, such as OTEL_EXPORTER_OTLP_ENDPOINT=https://telemetry.googleapis.com, send metrics and traces
to a collector; --metrics-listen serves metrics to Prometheus. With --metrics-elections they also show these elections by
name: whether each has a leader, its token, the time since the leader changed, and the candidates in line.

PORT, which Cloud Run sets, means 0.0.0.0:PORT unless an address is given. If a variable such as
SPANNER_EMULATOR_HOST is set, serve starts only with --dev, and then serves this machine only.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settled, err := s.resolve(c.env)
			if err != nil {
				return err
			}
			return c.serve(cmd.Context(), settled)
		},
	}
	s.addTo(c, cmd)
	return cmd
}

func (s *serviceSettings) addTo(c *cli, cmd *cobra.Command) {
	cmd.Flags().Var(&value[string]{&s.listen, "", "HOST:PORT", parseText}, "listen", "where to serve (default "+defaultListen+")")
	cmd.Flags().Var(&value[string]{&s.store, "", "STORE", parseText}, "store", "the store of the leases (default: a folder in the user's state folder)")
	cmd.Flags().Var(&value[string]{&s.events, "", "TOPIC", parseText}, "events", "where changes are announced (default "+noEvents+")")
	cmd.Flags().Var(&value[string]{&s.eventsEndpoint, "", "HOST:PORT", parseText}, "events-endpoint", "the regional Pub/Sub endpoint that all instances publish through, if they run in several regions, such as europe-west4-pubsub.googleapis.com:443 (default: that of the nearest region)")
	cmd.Flags().Var(&value[string]{&s.members, "", "TOPIC", parseText}, "members", "where instances tell each other of the members of elections (default "+noMembers+")")
	s.peers.addTo(c, cmd)
	cmd.Flags().Var(&value[time.Duration]{&s.history, "", "DURATION", durations(rule.MinHistory, rule.MaxHistory, fmt.Sprintf("must be a duration from %v to %v, such as 720h", rule.MinHistory, rule.MaxHistory))}, "history", "how long events are kept, 1h to 876000h (default 720h)")
	cmd.Flags().Var(&value[time.Duration]{&s.cacheExpiry, "", "DURATION", durations(1, instance.MaxCacheExpiry, fmt.Sprintf("must be a duration above 0s, and %v at most", instance.MaxCacheExpiry))}, "cache-expiry", "how old a read without consistency=strong may be, 10s at most (default 5s)")
	cmd.Flags().Var(&value[time.Duration]{&s.streamLimit, "", "DURATION", durations(time.Second, time.Hour, "must be a duration from 1s to 1h, such as 4m30s")}, "stream-limit", "how long a stream lasts before its reader must resume, 1h at most; less than the request limit of a proxy in front (default 4m30s)")
	concurrency := integers(2, math.MaxInt, "must be an integer, 2 or more: with one request at a time, no candidate could wait and no stream be open; leave it out if the platform sets no limit")
	cmd.Flags().Var(&value[int]{&s.maxConcurrency, "", "N", concurrency}, "max-concurrency", "how many requests the platform sends at a time, 2 or more, such as Cloud Run's concurrency; waits and streams take 80 % of them at most (default: unbounded)")
	cmd.Flags().Var(&value[string]{&s.access.auth, "", "HOW", parseText}, "auth", "how to authenticate callers: none, platform or oidc (default "+authNone+")")
	cmd.Flags().Var(&value[[]string]{&s.access.audiences, "", "AUDIENCE,…", parseTexts}, "auth-audience", "the audience of valid credentials, such as the URL of this service")
	cmd.Flags().Var(&value[[]string]{&s.access.issuers, "", "URL,…", parseTexts}, "auth-issuer", "the issuer of valid credentials (default "+defaultIssuer+")")
	cmd.Flags().Var(&value[[]string]{&s.access.probe, "", "URL,…", parseTexts}, "auth-probe", "with platform: the URL of this service, which is asked without a credential to see that Cloud Run refuses that (default: the URL that Cloud Run gives it); required, alone or beside a URL: refuse every call until that is seen")
	cmd.Flags().Var(&value[[]string]{&s.access.proxies, "", "AUDIENCE,…", parseTexts}, "iap-audience", "also admit people who come through Google's Identity-Aware Proxy, whose assertions have this audience: /projects/NUMBER/locations/REGION/services/SERVICE")
	cmd.Flags().Var(&value[string]{&s.access.file, "", "FILE", parseText}, "access", "the access file, in YAML: roles and limits of principals; changes are followed")
	cmd.Flags().Var(&value[string]{&s.certificate.cert, "", "FILE", parseText}, "tls-cert", "serve HTTPS with this certificate, in PEM, its issuers' after it; changes are followed")
	cmd.Flags().Var(&value[string]{&s.certificate.key, "", "FILE", parseText}, "tls-key", "the key of the certificate, in PEM")
	cmd.Flags().Var(&value[[]string]{&s.statementKeys, "", "KEY,…", addKeys(&s.statementKeys)}, "statement-key", "sign statements with this key: a file, in PEM (PKCS #8, Ed25519 or P-256), or "+kmsPrefix+"projects/…/cryptoKeyVersions/N; more keys after it are published only (default: none)")
	cmd.Flags().Var(&value[[]string]{&s.hosts, "", "NAME,…", parseTexts}, "allow-host", "with --auth none: names under which a proxy on this machine or a container calls the service")
	cmd.Flags().Var(&value[string]{&s.metricsListen, "", "HOST:PORT", parseText}, "metrics-listen", "where to serve metrics to Prometheus, at /metrics (default: nowhere)")
	cmd.Flags().Var(&value[[]leadership.Election]{&s.named, "", "NAME|PREFIX*,…", parseElections}, "metrics-elections", "elections that metrics show by name, the first 200 of them: names, and beginnings of names with a *, such as 'deploy.*,nightly' (default: none)")
	c.complete(cmd, "auth", authNone, authPlatform, authOIDC)
	cmd.Flags().BoolVar(&s.kubernetes, "kubernetes", false, "also serve Leases to Kubernetes clients, below "+kubernetes.Path+"; see 'regent kubeconfig'")
	cmd.Flags().BoolVar(&s.ui, "ui", true, "also serve the dashboard, at "+dashboard.Path)
	cmd.Flags().BoolVar(&s.mcp, "mcp", false, "also serve tools for language models, at "+mcp.Path)
	cmd.Flags().BoolVar(&s.dev, "dev", false, "allow emulators, and serve this machine only")
	c.from(
		cmd, "listen", "store", "events", "events-endpoint", "members", "history", "cache-expiry", "stream-limit", "max-concurrency", "auth", "auth-audience", "auth-issuer", "auth-probe",
		"iap-audience", "access", "tls-cert", "tls-key", "statement-key", "allow-host", "metrics-listen", "metrics-elections", "kubernetes", "ui", "mcp",
	)
}

// serve runs the service until ctx ends, a signal comes, or the store has failed for good.
func (c *cli) serve(ctx context.Context, s serviceSettings) error {
	if c.env["GOGC"] == "" { // calls make much garbage, and little of the heap stays live
		debug.SetGCPercent(200)
		debug.SetMemoryLimit(httpapi.MemoryLimit())
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	name := instanceName(c.env)
	m, err := c.openMeasures(ctx, s, name)
	if err != nil {
		return err
	}
	defer m.close()
	defer whenDone(ctx, func() {
		stop() // the next signal ends the process
		m.log.Info("stopping")
	})()
	at, err := openEndpoint(s, m.log) // before the store, which may be created
	if err != nil {
		return err
	}
	defer at.Close()
	who, err := openAccess(ctx, s.access, c.env, m) // before the store, too
	if err != nil {
		return err
	}
	if who.issuer, err = openIssuer(ctx, s, &cloud.Client{}); err != nil {
		return err
	}
	leases, err := c.openStore(ctx, m.log, s)
	switch {
	case err != nil && ctx.Err() != nil: // it was told to stop before it had begun
		return nil
	case err != nil:
		return err
	}
	return errors.Join(c.serveStore(ctx, m, who, name, at, s, leases), leases.Close())
}

// whenDone calls do in a goroutine when ctx is done. wait cancels that if ctx is not done, and
// otherwise waits until do has returned.
func whenDone(ctx context.Context, do func()) (wait func()) {
	returned := make(chan struct{})
	callOff := context.AfterFunc(ctx, func() {
		defer close(returned)
		do()
	})
	return func() {
		// A context is done a moment before it begins do, which can still be called off then.
		if ctx.Err() != nil || !callOff() {
			<-returned
		}
	}
}

// openedStore is a store that may be served.
type openedStore struct {
	store.Store
	floor rule.Floor
}

// openStore opens the store and reads what a server must know of it, so that a mistake ends serve.
func (c *cli) openStore(ctx context.Context, log *slog.Logger, s serviceSettings) (o openedStore, err error) {
	if path, ok := strings.CutPrefix(s.store, "file:"); ok {
		if err := c.makeStateFolder(path); err != nil {
			return o, err
		}
	}
	err = awaitStore(ctx, log, c.env["K_SERVICE"] != "", func() (err error) {
		if o.Store, err = store.Open(ctx, s.store, store.Config{History: s.history, Log: log}); err != nil {
			return storeError{s.store, err}
		}
		if err = store.RefuseMoved(ctx, o.Store); err == nil {
			o.floor, err = store.Floor(ctx, o.Store)
		}
		if err != nil {
			o.Close()
			return storeError{s.store, err}
		}
		return nil
	})
	return o, err
}

const (
	// storePatience is how long a store may take to answer at all: it may be starting too.
	storePatience = time.Minute

	// rightsPatience leaves 40 s of the time in which an instance must start on Cloud Run: see
	// startup_probe in terraform/service.tf.
	rightsPatience = 200 * time.Second

	storePause = 3 * time.Second
)

// awaitStore repeats open while the store gives no answer in time, for storePatience. On Cloud Run
// a right takes minutes to count after it was granted, and no service can be created whose first
// instance ends: there awaitStore repeats all that fails with StoreUnavailable, for rightsPatience.
// Every other error is final, and so is the last one when ctx ends.
func awaitStore(ctx context.Context, log *slog.Logger, onCloudRun bool, open func() error) error {
	passing, limit := context.DeadlineExceeded, storePatience
	if onCloudRun {
		passing, limit = leadership.StoreUnavailable, rightsPatience
	}
	begun := time.Now()
	for told := false; ; told = true {
		err := open()
		if !errors.Is(err, passing) || time.Since(begun) >= limit {
			return err
		}
		if !told {
			log.LogAttrs(ctx, slog.LevelWarn, "the store does not answer yet, and this instance waits for it; a right that was just granted takes minutes to count",
				slog.String("limit", limit.String()), slog.Any("cause", err))
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(storePause):
		}
	}
}

// makeStateFolder creates the folder of the default store, accessible only by this user. It creates
// no other folder.
func (c *cli) makeStateFolder(path string) error {
	if state, err := statePath(c.env); err != nil || state != path {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("cannot make the state folder: %w; choose another place with --store file:PATH", err)
	}
	return nil
}

// serveStore serves until ctx ends, or the store or the server fails.
func (c *cli) serveStore(ctx context.Context, m *measures, who *access, name string, at *endpoint, s serviceSettings, opened openedStore) error {
	leases, journal := m.Store(opened.Store), m.Journal(opened.Store)
	inst, closeBuses, err := c.newInstance(ctx, m, name, s, leases, journal, opened.floor)
	if err != nil {
		return err
	}
	defer closeBuses()
	if err := m.Degraded(func() []instance.Trouble { return append(inst.Troubles(), who.troubles()...) }); err != nil {
		return err
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { inst.Run(background) })
	running.Go(func() { who.run(background) })
	running.Go(func() { m.run(background) })
	running.Go(func() { m.Follow(background, inst) })
	running.Go(func() { at.run(background) })
	defer running.Wait()
	defer cancel()
	ready := &readiness{store: leases, instance: inst, latch: who.latch, access: who.file, crowd: crowd{log: m.log, count: m.Displaced}}
	service := instance.Guard(inst, append(who.gates(s.maxConcurrency), m)...) // refused calls are no operations
	config := httpapi.Config{Service: service, Log: m.log, Ready: ready.check, Hosts: s.answers(), Admit: who.admit, Reply: who.replies.Enter, Statements: who.issuer, StreamLimit: s.streamLimit}
	beside, err := openDoors(s, who, service, config, journal)
	if err != nil {
		return err
	}
	defer beside.close()
	config.Doors = beside.byPath
	api := httpapi.New(config)
	server, hurry := newServer(timing.Handler(m.pipeline.Meters, m.pipeline.Tracers, api, who.wrap(api), who.verified), ready.crowd.displaced, m.log)
	done := make(chan error, 1)
	go func() { done <- at.serve(server) }()
	c.greet(m.log, at, s)
	var failure error
	select {
	case err := <-done:
		return err
	case <-brokenOf(leases):
		failure = brokenError(ctx, leases)
	case <-ctx.Done():
	}
	ready.draining.Store(true)
	var closing sync.WaitGroup
	closing.Go(beside.close) // a call in progress may delay it, until hurry is called
	defer closing.Wait()
	late, release := context.WithTimeout(background, finishTimeout+answerTimeout)
	defer release()
	var draining sync.WaitGroup
	draining.Go(func() { inst.Drain(late, wire.Draining) })
	err = shutdown(server, hurry, finishTimeout, answerTimeout)
	<-done
	draining.Wait()
	return errors.Join(failure, err)
}

// newInstance returns an instance with a unique name. closeBuses must be called after it has run.
func (c *cli) newInstance(ctx context.Context, m *measures, name string, s serviceSettings, leases service.Store, journal service.Journal, floor rule.Floor) (i *instance.Instance, closeBuses func(), err error) {
	config := instance.Config{Store: leases, Journal: journal, Name: name, Alone: s.local(), CacheExpiry: s.cacheExpiry, Floor: floor, Log: m.log}
	if config.Peers, err = s.peers.peers(); err != nil {
		return nil, nil, err
	}
	var open []io.Closer
	closeBuses = func() {
		for _, bus := range open {
			bus.Close()
		}
	}
	if s.events != noEvents {
		bus, err := pubsub.Open(ctx, pubsub.Config{Topic: s.events, Instance: config.Name, PublishEndpoint: s.eventsEndpoint, Log: m.log})
		if err != nil {
			return nil, nil, fmt.Errorf("%w; check --events, --events-endpoint and the credentials, or give --events %s", err, noEvents)
		}
		open, config.Bus = append(open, bus), m.Bus(bus)
	}
	if s.members != noMembers {
		bus, err := pubsub.OpenMessages(ctx, pubsub.Config{Topic: s.members, Instance: config.Name, Log: m.log})
		if err != nil {
			closeBuses()
			return nil, nil, fmt.Errorf("%w; check --members and the credentials, or give --members %s", err, noMembers)
		}
		once := sync.OnceFunc(func() {
			m.log.Warn("a message of the topic of members was refused: no instance on this store has sent it; find out who else may publish there. Others are counted, and not logged", "topic", s.members)
		})
		open, config.Members = append(open, bus), &instance.Sealed{
			Bus: bus, Secret: func(ctx context.Context) ([]byte, error) { return service.SharedSecret(ctx, journal) },
			Refused: func() { once(); m.Refused(ctx, telemetry.Forged) },
		}
	}
	if i, err = instance.New(config); err == nil {
		err = errors.Join(m.Cache(i.CacheReads), m.Stretch(i.Stretch), m.Members(i))
	}
	if err != nil {
		closeBuses()
		return nil, nil, err
	}
	return i, closeBuses, nil
}

// instanceName returns the revision of the service on Cloud Run, where every machine is called
// localhost, or else the machine's name, with a random part that makes it unique.
func instanceName(env map[string]string) string {
	host, _ := os.Hostname()
	name := strings.Map(func(r rune) rune {
		if leadership.CandidateID(r).Validate() != nil {
			return '-'
		}
		return r
	}, cmp.Or(env["K_REVISION"], host, "regent"))
	const enough = 64
	return name[:min(len(name), enough)] + "-" + strings.ToLower(rand.Text())
}

// newServer returns a server. After hurry, calls in progress answer without waiting for the store.
func newServer(h http.Handler, displaced func(), log *slog.Logger) (server *http.Server, hurry func()) {
	server = httpapi.Server(h, displaced)
	server.ErrorLog = newServerLog(log)
	calls, cancel := context.WithCancelCause(context.Background())
	server.BaseContext = func(net.Listener) context.Context { return calls }
	return server, func() { cancel(wire.Draining) }
}

// brokenOf returns a channel that is closed when the store has failed for good; nil for a store
// that may always recover.
func brokenOf(leases service.Store) <-chan struct{} {
	if s, ok := leases.(interface{ Broken() <-chan struct{} }); ok {
		return s.Broken()
	}
	return nil
}

// brokenError returns why the store has failed. It ends the service, for a supervisor to restart
// it.
func brokenError(ctx context.Context, leases service.Store) error {
	_, err := leases.List(ctx, "", "", 1)
	return fmt.Errorf("the store has failed and has to be opened again: %w", cmp.Or(err, error(leadership.StoreUnavailable)))
}

func (c *cli) greet(log *slog.Logger, at *endpoint, s serviceSettings) {
	log.Info("serving", "address", at.Addr().String(), "scheme", at.scheme(), "store", s.store, "events", s.events, "members", s.members, "auth", s.access.auth, "version", currentBuild().Version)
	if strings.HasPrefix(s.store, "memory:") {
		log.Warn("the leases are in memory: a restart forgets them, and their fencing tokens start from 1 again")
	}
	if isTerminal(c.err) {
		url := at.scheme() + "://" + at.Addr().String()
		fmt.Fprintf(c.err, "\nRegent is at %[1]s; Ctrl-C stops it. Try, in another terminal:\n\n  %[2]s acquire demo --candidate me --server %[1]s\n\n", url, os.Args[0])
	}
}

// Of the 10 seconds that Cloud Run grants, these leave 2 for background work to finish, and more
// for the store to close.
const (
	finishTimeout = 4 * time.Second // for calls in progress to finish
	answerTimeout = time.Second     // then for the remaining calls to answer without the store
)

// shutdown lets calls in progress finish. After the time finish it calls hurry; after the further
// time answer it closes the remaining connections.
func shutdown(server *http.Server, hurry func(), finish, answer time.Duration) error {
	late := time.AfterFunc(finish, hurry)
	defer late.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), finish+answer)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("calls were cut off after %v", finish+answer), server.Close())
	}
	return nil
}

// readiness reports whether calls should be sent here.
type readiness struct {
	store    service.Store
	instance *instance.Instance
	crowd    crowd
	latch    func() string // as access.latch
	access   *authz.File   // nil without an access file
	draining atomic.Bool

	mu    sync.Mutex
	asked *question // the newest; guarded by mu
}

// question is a call of the store, whose answer many probes share.
type question struct {
	at       time.Time
	answered chan struct{} // closed once err is set
	err      error
}

const (
	// readyTimeout is how long the store may take to count as reachable. Probes do not wait longer.
	readyTimeout = 2 * time.Second
	// readyFor is how long an answer of the store is shared: however many probes come, they cost
	// one call in that time.
	readyFor = time.Second
)

// check makes the smallest call that shows whether the store answers.
func (r *readiness) check(ctx context.Context) (degraded string, err error) {
	if r.draining.Load() {
		return "", &leadership.Error{Code: wire.Draining}
	}
	if r.latch != nil {
		if why := r.latch(); why != "" {
			return "", &leadership.Error{Code: leadership.StoreUnavailable, Detail: "every call is refused, because " + why}
		}
	}
	q := r.ask(ctx)
	select {
	case <-q.answered:
		access := ""
		if r.access != nil && r.access.Invalid() { // any caller may read this, so the cause is only in the log
			access = "the access file has changed and cannot be used: the one before stays in force here, and no instance can start; the log says why"
		}
		return joined(r.instance.Degraded(), r.crowd.degraded(), access), q.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// ask returns the newest question, or asks a new one if that is older than readyFor.
func (r *readiness) ask(ctx context.Context) *question {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q := r.asked; q != nil && time.Since(q.at) < readyFor {
		return q
	}
	q := &question{at: time.Now(), answered: make(chan struct{})}
	r.asked = q
	go func() {
		defer close(q.answered)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout) // other probes wait for it, too
		defer cancel()
		_, q.err = r.store.List(ctx, "", "", 1)
	}()
	return q
}

func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "; ")
}
