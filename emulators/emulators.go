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

// startLimit limits one start. Seconds are usual; a busy machine with two cores that starts three
// JVMs, or a Docker engine that must pull an image, needs more.
const startLimit = 3 * time.Minute

// ErrUnavailable says that no source has an emulator. The wrapping error says what each source
// lacks, and what to install.
var ErrUnavailable = errors.New("no emulator is available")

// Config says which emulators to start, and from where. The zero value starts all of them, each
// from the first source that has it.
type Config struct {
	Which    []Kind    // none: all
	Source   Source    // "": REGENT_EMULATORS and, if that is empty, the first that has it
	Optional bool      // omit unavailable emulators instead of returning ErrUnavailable; see Set.Missing
	Log      io.Writer // output of the emulators; nil: kept only for the error of a failed start
}

// Set is a set of running emulators. Its methods may be called concurrently.
type Set struct {
	running []*emulator
	missing []error
}

type emulator struct {
	kind   Kind
	host   string
	source Source
	stop   func(context.Context) error // idempotent
	ended  <-chan struct{}             // closed when its processes have ended; nil if they are not known
}

// Start starts the emulators of cfg in parallel and returns when each has answered a call. If one
// is not available (ErrUnavailable), does not start, or does not answer within three minutes or
// before ctx ends, those that did start are stopped and all errors are returned. ctx limits only
// the start: the emulators run until Stop, or until this process ends.
func Start(ctx context.Context, cfg Config) (*Set, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	started, errs := make([]*emulator, len(cfg.Which)), make([]error, len(cfg.Which))
	var starting sync.WaitGroup
	for i, kind := range cfg.Which {
		starting.Go(func() { started[i], errs[i] = start(ctx, cfg, kind) })
	}
	starting.Wait()

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

// complete returns the configuration with its defaults, or an error that names the valid choices.
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

func start(ctx context.Context, cfg Config, kind Kind) (*emulator, error) {
	src, err := choose(ctx, cfg, kind)
	if err != nil {
		return nil, err
	}
	e, err := src.start(ctx, kind)
	if err != nil {
		return nil, fmt.Errorf("start the %s emulator (%s): %w", kind.Title(), src.name, err)
	}
	e.source = src.name
	return e, nil
}

// Host returns the host:port of a kind, or "" if the set does not have it.
func (s *Set) Host(kind Kind) string { return s.of(kind).host }

// Source returns where the emulator of a kind comes from, or "" if the set does not have it.
func (s *Set) Source(kind Kind) Source { return s.of(kind).source }

// of returns the emulator of a kind, or the zero one if the set does not have it.
func (s *Set) of(kind Kind) emulator {
	for _, e := range s.running {
		if e.kind == kind {
			return *e
		}
	}
	return emulator{}
}

// Ended returns a channel that gets the kind of each emulator whose processes have ended, until ctx
// ends. Only those are watched that Start has started as processes.
func (s *Set) Ended(ctx context.Context) <-chan Kind {
	ended := make(chan Kind, len(s.running))
	for _, e := range s.running {
		go func() {
			select {
			case <-e.ended:
				ended <- e.kind
			case <-ctx.Done():
			}
		}()
	}
	return ended
}

// Env returns a KEY=value line for each running emulator, with the variable that Google's client
// libraries read.
func (s *Set) Env() []string {
	var env []string
	for _, e := range s.running {
		env = append(env, e.kind.Variable()+"="+e.host)
	}
	return env
}

// Missing returns why emulators are not in the set: one error for each that Config.Optional
// omitted.
func (s *Set) Missing() []error { return s.missing }

// Stop ends the emulators that Start started, and leaves alone those that ran before. It returns
// when all their processes or containers are gone, after some ten seconds at most; if ctx ends
// first it returns that error, and the clean-up continues without it. A second call has no effect.
func (s *Set) Stop(ctx context.Context) error {
	errs := make([]error, len(s.running))
	var wg sync.WaitGroup
	for i, e := range s.running {
		wg.Go(func() {
			if err := e.stop(ctx); err != nil {
				errs[i] = fmt.Errorf("stop the %s emulator: %w", e.kind.Title(), err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// lockedWriter serialises the output of several emulators.
type lockedWriter struct {
	mu sync.Mutex // guards w
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
