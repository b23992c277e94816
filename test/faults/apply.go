package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"regent/test/checker"
	"regent/test/faults/record"
	proc "regent/test/process"
	"regent/test/proxy"
)

// applyFaults makes all faults happen, each at its time, and returns when all are mended. The error
// names faults that did not happen.
func (s *session) applyFaults(ctx context.Context) error {
	errs := make([]error, len(s.plan.Faults))
	var all sync.WaitGroup
	for i, f := range s.plan.Faults {
		all.Go(func() {
			sleep(ctx, f.At)
			from := s.recorder.Now()
			if err := s.do(ctx, f); err != nil {
				errs[i] = fmt.Errorf("%v: %w", f, err)
			}
			s.notes.fault(checker.Fault{Name: f.what(), From: from, Until: s.recorder.Now()})
		})
	}
	all.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}

// do makes a fault, and mends it.
func (s *session) do(ctx context.Context, f Fault) error {
	switch f.Kind {
	case Bad, Reset, Cut:
		return s.disturb(ctx, f)
	case Mute, Deaf:
		g := s.gates[f.Target]
		g.Shut(map[Kind]string{Mute: "Publish", Deaf: "StreamingPull"}[f.Kind])
		sleep(ctx, f.For)
		g.Open()
		return nil
	case KillGuard, StopGuard:
		return s.harmGuard(ctx, f)
	case Partition:
		for name, h := range s.hops {
			if f.parts(name) {
				h.Set(proxy.Conditions{Lost: [2]bool{true, true}})
				defer h.Heal()
			}
		}
		sleep(ctx, f.For)
		return nil
	case Pause:
		s.part(f.Target).now().pause(ctx, f.For)
		return nil
	}
	if f.Kind == Stutter {
		for end := s.recorder.Now() + f.For; s.recorder.Now() < end && ctx.Err() == nil; sleep(ctx, 2*turn) {
			s.part(f.Target).now().pause(ctx, 4*turn)
		}
		return nil
	}
	return s.replace(ctx, f)
}

// disturb makes a fault in a hop.
func (s *session) disturb(ctx context.Context, f Fault) error {
	h := s.hops[f.Target]
	if h == nil {
		return fmt.Errorf("there is no hop %q", f.Target)
	}
	if f.Kind == Bad {
		h.Set(f.Weather)
		sleep(ctx, f.For)
		h.Heal()
		return nil
	}
	defer h.Cut(proxy.Request, -1, false)
	for end := s.recorder.Now() + f.For; s.recorder.Now() < end && ctx.Err() == nil; {
		if f.Kind == Cut {
			h.Cut(f.Way, f.After, f.RST)
		}
		if f.Kind == Reset || s.recorder.Now()+f.For-end < 2*turn {
			h.Reset()
		}
		sleep(ctx, turn)
	}
	return nil
}

// turn is the time from one reset, or one cut, to the next.
const turn = 50 * time.Millisecond

// harmGuard kills or stops the guard of a `regent run` that leads.
func (s *session) harmGuard(ctx context.Context, f Fault) error {
	within, cancel := context.WithTimeout(ctx, guardTimeout)
	defer cancel()
	pid, err := s.anyGuard(within, f.Target)
	if err != nil {
		return err
	}
	if f.Kind == KillGuard {
		return syscall.Kill(pid, syscall.SIGKILL)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	sleep(ctx, f.For)
	if proc.IsGuard(pid) { // it may have been replaced
		return syscall.Kill(pid, syscall.SIGCONT)
	}
	return nil
}

// guardTimeout is how long it may take until some `regent run` leads.
const guardTimeout = 6 * time.Second

// anyGuard is the guard of the `regent run`, or of another one of the same election that leads in
// its place.
func (s *session) anyGuard(ctx context.Context, name string) (int, error) {
	of := s.wrapper(name).Election
	for {
		for _, w := range s.wrappers {
			if pid := w.guard(); w.Election == of && pid > 0 {
				return pid, nil
			}
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("no run of %s has a guard", of)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// replace ends a part, and starts it again.
func (s *session) replace(ctx context.Context, f Fault) error {
	if t := s.group(f.Target); t != nil {
		s.endGroup(t, f.Kind)
		sleep(ctx, f.For)
		return t.start()
	}
	if w := s.wrapper(f.Target); w != nil {
		if f.Kind == End && w.Mode == "" {
			s.mustEnd(w.Name, w.now())
		} else { // a stubborn command is told of SIGTERM, and ignores it
			w.now().kill()
		}
		sleep(ctx, f.For)
		return w.start()
	}
	return s.replaceServer(ctx, s.server(f.Target), f)
}

func (s *session) endGroup(t *group, k Kind) {
	for _, m := range t.Members {
		if m.Role == record.Watcher {
			s.notes.stopped(t.life(m))
		}
	}
	t.givesUp()
	if k == End {
		s.mustEnd(t.Name, t.now())
	} else {
		t.now().kill()
	}
}

func (s *session) replaceServer(ctx context.Context, v *server, f Fault) error {
	again := life{}
	switch f.Kind {
	case End:
		s.endServer(v)
	case OtherBoot:
		v.now().kill()
		again.offset = f.Offset
	case Point:
		v.now().kill()
		if err := v.start(ctx, life{point: fmt.Sprintf("%s:%d", f.Point, f.Hit)}); err != nil {
			return err
		}
		if err := v.dies(ctx); err != nil {
			return errors.Join(err, v.start(ctx, again))
		}
	default:
		v.now().kill()
	}
	sleep(ctx, f.For)
	return v.start(ctx, again)
}

// dies waits until the server has died at its failpoint, and makes changes for it to announce
// meanwhile. A server that does not die is killed.
func (v *server) dies(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, guardTimeout)
	defer cancel()
	for n := time.Duration(0); ctx.Err() == nil; n++ {
		select {
		case <-v.now().gone:
			return nil
		case <-time.After(turn):
			v.configure(ctx, v.session.plan.Elections[0], n%2*time.Millisecond)
		}
	}
	v.now().kill()
	return errors.New("it did not reach its failpoint")
}

// endTimeout is the time from SIGTERM to a part's end: Cloud Run grants a server as much.
const endTimeout = 10 * time.Second

// mustEnd sends SIGTERM to a part, and notes a failure if it does not end in time.
func (s *session) mustEnd(name string, p *process) {
	if begun := s.recorder.Now(); !p.end(endTimeout) {
		s.notes.fail("%s is not gone %v after SIGTERM", name, s.recorder.Now()-begun)
	}
}

// endServer ends a server with SIGTERM. It must exit without an error, whatever is broken around
// it.
func (s *session) endServer(v *server) {
	p := v.now()
	s.mustEnd(v.name, p)
	if code := p.cmd.ProcessState.ExitCode(); code > 0 {
		s.notes.fail("%s ends with exit code %d", v.name, code)
	}
}
