package emulators

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// startLimit bounds one start. Seconds are usual; a busy machine of two cores that
// starts three JVMs, or a Docker engine that has to pull an image, needs more.
const startLimit = 3 * time.Minute

// ErrUnavailable is the error of a kind that no source can give. The text around
// it says what each source lacks, and what to install.
var ErrUnavailable = errors.New("no emulator to be had")

// Config says which emulators to start, and from where. Its zero value starts all
// of them, each from the first source that has it.
type Config struct {
	Which    []Kind    // none: all
	Source   Source    // empty: REGENT_EMULATORS, and if that is empty, the first that can
	Optional bool      // leave out what is not to be had, instead of returning ErrUnavailable; see Set.Missing
	Log      io.Writer // what the emulators print; nil: kept only for the error of a failed start
}

// Set is a number of running emulators. Its methods may be called concurrently.
type Set struct {
	running []*emulator
	missing []error
}

// emulator is one that answers at host.
type emulator struct {
	kind Kind
	host string
	stop func(context.Context) error // idempotent
}

// Start starts the emulators of cfg side by side and returns when each of them has
// answered a call. If one cannot be had (ErrUnavailable), does not start or does not
// answer within three minutes or before ctx ends, those that did start are stopped
// and the errors of all are returned. ctx bounds the start only: the emulators run
// until Stop, or until this process ends.
func Start(ctx context.Context, cfg Config) (*Set, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	started, errs := startAll(ctx, cfg)

	set := &Set{}
	var failed []error
	for i, err := range errs {
		switch {
		case err == nil:
			set.running = append(set.running, started[i])
		case cfg.Optional && errors.Is(err, ErrUnavailable):
			set.missing = append(set.missing, err)
		default:
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return nil, errors.Join(append(failed, set.Stop(context.WithoutCancel(ctx)))...)
	}
	return set, nil
}

// complete returns the configuration with its defaults filled in, or an error that
// names the choices where there is a value that is none of them.
func (c Config) complete() (Config, error) {
	if len(c.Which) == 0 {
		c.Which = Kinds()
	}
	for _, kind := range c.Which {
		if err := kind.validate(); err != nil {
			return Config{}, err
		}
	}
	c.Source = cmp.Or(c.Source, Source(os.Getenv("REGENT_EMULATORS")))
	if c.Log != nil {
		c.Log = &lockedWriter{w: c.Log}
	}
	return c, c.Source.validate()
}

func startAll(ctx context.Context, cfg Config) ([]*emulator, []error) {
	started, errs := make([]*emulator, len(cfg.Which)), make([]error, len(cfg.Which))
	var wg sync.WaitGroup
	for i, kind := range cfg.Which {
		wg.Go(func() { started[i], errs[i] = start(ctx, cfg, kind) })
	}
	wg.Wait()
	return started, errs
}

func start(ctx context.Context, cfg Config, kind Kind) (*emulator, error) {
	src, err := choose(ctx, cfg, kind)
	if err != nil {
		return nil, err
	}
	e, err := src.start(ctx, kind)
	if err != nil {
		return nil, fmt.Errorf("start the %s emulator (%s): %w", kind.title(), src.name, err)
	}
	return e, nil
}

// Host returns the host:port of a kind, or "" if the set does not have it.
func (s *Set) Host(kind Kind) string {
	for _, e := range s.running {
		if e.kind == kind {
			return e.host
		}
	}
	return ""
}

// Env returns a KEY=value line for each running emulator, under the name that
// Google's client libraries read.
func (s *Set) Env() []string {
	var env []string
	for _, e := range s.running {
		env = append(env, e.kind.Variable()+"="+e.host)
	}
	return env
}

// Missing returns why emulators are not in the set, one error for each that
// Config.Optional left out.
func (s *Set) Missing() []error { return s.missing }

// Stop ends the emulators that Start started, and leaves alone those that ran
// before. It returns when all their processes or containers are gone, at most some
// ten seconds later; when ctx ends first it returns that error, and the end of the
// emulators goes on without it. A second call changes nothing.
func (s *Set) Stop(ctx context.Context) error {
	errs := make([]error, len(s.running))
	var wg sync.WaitGroup
	for i, e := range s.running {
		wg.Go(func() {
			if err := e.stop(ctx); err != nil {
				errs[i] = fmt.Errorf("stop the %s emulator: %w", e.kind.title(), err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// lockedWriter keeps apart what several emulators print at once.
type lockedWriter struct {
	mu sync.Mutex // guards w
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
