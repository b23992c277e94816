package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"regent/httpapi"
	"regent/httpapi/wire"
	"regent/leadership"
	"regent/store"
)

func (c *cli) serveCommand() *cobra.Command {
	var s serviceSettings
	cmd := &cobra.Command{
		Use:   "serve [--listen HOST:PORT] [--store STORE]",
		Short: "Run the service",
		Long: `Run the service until SIGINT or SIGTERM, which lets calls under way finish; a second signal ends it at once.
If the store has failed for good it ends by itself, with exit code 5, for a supervisor to start it again.

Stores:
  memory:                                      this process; gone with it
  bolt:PATH                                    one local file, for one process
  firestore:PROJECT[/DATABASE]                 Firestore
  spanner:projects/P/instances/I/databases/D   Spanner; prepare it once with 'regent migrate'

PORT, as Cloud Run sets it, means 0.0.0.0:PORT unless an address is given. With a variable such as SPANNER_EMULATOR_HOST set,
serve needs --dev to start; with --dev it serves this machine only.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settled, err := s.resolve(c.env)
			if err != nil {
				return err
			}
			return c.serve(cmd.Context(), settled)
		},
	}
	cmd.Flags().Var(&value[string]{&s.listen, "", "HOST:PORT", parseText}, "listen", "where to serve (default "+defaultListen+")")
	cmd.Flags().Var(&value[string]{&s.store, "", "STORE", parseText}, "store", "what keeps the leases (default: a bolt file in the user's state folder)")
	cmd.Flags().BoolVar(&s.dev, "dev", false, "allow emulators, and serve this machine only")
	c.from(cmd, "listen", "REGENT_LISTEN")
	c.from(cmd, "store", "REGENT_STORE")
	return cmd
}

// serve runs the service until ctx ends, a signal comes, or the store has failed for good.
func (c *cli) serve(ctx context.Context, s serviceSettings) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := newLog(c.err)
	unhook := context.AfterFunc(ctx, func() {
		stop() // from now on a signal ends the process
		log.Info("stopping")
	})
	defer unhook()
	listener, err := net.Listen("tcp", s.listen) // before the store, which may be created
	if err != nil {
		return fmt.Errorf("%w; choose another address with --listen", err)
	}
	defer listener.Close()
	leases, err := c.openStore(ctx, s.store)
	if err != nil {
		return err
	}
	return errors.Join(c.serveStore(ctx, log, listener, s.store, leases), leases.Close())
}

func (c *cli) openStore(ctx context.Context, spec string) (leadership.Store, error) {
	if path, ok := strings.CutPrefix(spec, "bolt:"); ok {
		if err := c.makeStateFolder(path); err != nil {
			return nil, err
		}
	}
	leases, err := store.Open(ctx, spec)
	if err != nil {
		return nil, storeError{spec, err}
	}
	return leases, nil
}

// makeStateFolder makes the folder of the default store, for its user alone. Any other folder is the operator's.
func (c *cli) makeStateFolder(path string) error {
	if state, err := statePath(c.env); err != nil || state != path {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("the state folder cannot be made: %w; choose another place with --store bolt:PATH", err)
	}
	return nil
}

func (c *cli) serveStore(ctx context.Context, log *slog.Logger, listener net.Listener, spec string, leases leadership.Store) error {
	ready := &readiness{store: leases}
	server, hurry := newServer(httpapi.New(httpapi.Config{Service: leadership.New(leases), Log: log, Ready: ready.check}), log)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	c.greet(log, listener.Addr(), spec)
	var failure error
	select {
	case err := <-done:
		return err
	case <-brokenOf(leases):
		failure = brokenError(ctx, leases)
	case <-ctx.Done():
	}
	ready.drain()
	err := shutdown(server, hurry, finishTimeout, answerTimeout)
	<-done
	return errors.Join(failure, err)
}

// newServer returns a server and what makes its calls hurry: they wait for the store no longer, and answer.
func newServer(h http.Handler, log *slog.Logger) (server *http.Server, hurry func()) {
	server = httpapi.Server(h)
	server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	calls, cancel := context.WithCancelCause(context.Background())
	server.BaseContext = func(net.Listener) context.Context { return calls }
	return server, func() { cancel(wire.Draining) }
}

// brokenOf is closed once the store has failed for good; nil for a store that always may recover.
func brokenOf(leases leadership.Store) <-chan struct{} {
	if s, ok := leases.(interface{ Broken() <-chan struct{} }); ok {
		return s.Broken()
	}
	return nil
}

// brokenError ends the service, so that whoever supervises it starts it again. The store says why in answer to any call.
func brokenError(ctx context.Context, leases leadership.Store) error {
	_, err := leases.List(ctx, "", "", 1)
	return fmt.Errorf("the store has failed and has to be opened again: %w", cmp.Or(err, error(leadership.StoreUnavailable)))
}

// greet says where the service is and where it keeps its leases.
func (c *cli) greet(log *slog.Logger, address net.Addr, store string) {
	log.Info("serving", "address", address.String(), "store", store, "version", currentBuild().Version)
	if strings.HasPrefix(store, "memory:") {
		log.Warn("the leases are in memory: a restart forgets them, and their fencing tokens start from 1 again")
	}
	if host, _, err := net.SplitHostPort(address.String()); err == nil && !isLoopback(host) {
		log.Warn("there is no authentication yet: whoever can reach this address can lead, and delete; let only those in who may")
	}
	if isTerminal(c.err) {
		fmt.Fprintf(c.err, "\nRegent is at http://%s; Ctrl-C stops it. Try, in another terminal:\n\n  export REGENT_SERVER=http://%s\n  regent acquire reports --candidate me\n\n", address, address)
	}
}

// Of the 10 seconds that Cloud Run grants, these leave 2 for the store to close.
const (
	finishTimeout = 6 * time.Second // for calls under way to finish
	answerTimeout = 2 * time.Second // and then, for those that still wait for the store, to answer without it
)

// shutdown lets calls under way finish. After a time it tells those that are left to hurry, and cuts off whatever does not answer then.
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

// readiness says whether calls should be sent here.
type readiness struct {
	store    leadership.Store
	draining atomic.Bool
}

func (r *readiness) drain() { r.draining.Store(true) }

// readyTimeout is how long a store may take and still count as there. Whoever probes does not wait for longer.
const readyTimeout = 2 * time.Second

// check asks the store for as little as shows that it answers.
func (r *readiness) check(ctx context.Context) error {
	if r.draining.Load() {
		return &leadership.Error{Code: wire.Draining}
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	_, err := r.store.List(ctx, "", "", 1)
	return err
}
