package faults

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"regent/leadership"
	"regent/test/faults/record"
	"regent/test/machine"
	"regent/test/proxy"
)

// session is a run under way.
type session struct {
	setup    *Setup
	plan     Plan
	lie      Lie
	id       string // of the run: the name of its project, too
	dir      string // where its processes write
	notes    notes
	recorder *record.Recorder
	excuses  machine.Excuses
	renewals machine.Excuses // of those on a file

	hops     map[string]*proxy.Hop
	gates    map[string]*proxy.Gate // to the topic, by the names of their hops
	servers  []*server
	groups   []*group
	wrappers []*wrapper
	ledger   *ledger
	topic    *topic

	waiting sync.WaitGroup // for processes, and what they say
	closing []func()       // in reverse
}

func newSession(r *Setup, p Plan, dir string, lie Lie) *session {
	s := &session{setup: r, plan: p, lie: lie, dir: dir, id: "faults-" + strings.ToLower(rand.Text()[:12]), hops: map[string]*proxy.Hop{}, gates: map[string]*proxy.Gate{}}
	s.recorder = record.NewRecorder(0, s.notes.add)
	return s
}

// setUp builds everything, and starts the servers.
func (s *session) setUp(ctx context.Context) error {
	env, args, err := s.place(ctx)
	if err != nil {
		return err
	}
	if s.ledger, err = newLedger(&s.notes, s.recorder); err != nil {
		return err
	}
	s.closing = append(s.closing, s.ledger.close)
	var starting sync.WaitGroup
	errs := make([]error, s.plan.Servers)
	for i := range s.plan.Servers {
		own, err := s.linked(serverName(i), env)
		if err != nil {
			return err
		}
		v, err := s.newServer(i, own, args)
		if err != nil {
			return err
		}
		s.servers = append(s.servers, v)
		s.closing = append(s.closing, v.proxy.Close)
		starting.Go(func() { errs[i] = v.start(ctx, life{}) })
	}
	starting.Wait()
	return errors.Join(append(errs, s.configure(ctx))...)
}

// configure makes the elections, so that there is something to watch.
func (s *session) configure(ctx context.Context) error {
	for _, e := range slices.Concat(s.plan.Elections, []leadership.Election{record.Pool}) {
		if err := s.servers[0].configure(ctx, e, 0); err != nil {
			return err
		}
	}
	return nil
}

// linked is the environment with each emulator behind a hop of the server's own, and the topic
// behind a gate as well.
func (s *session) linked(name string, env map[string]string) (own []string, err error) {
	for variable, host := range env {
		what := "store"
		if strings.HasPrefix(variable, "PUBSUB") {
			what = "topic"
			if host, err = s.gate(hopName(name, what), host); err != nil {
				return nil, err
			}
		}
		h, err := s.hop(hopName(name, what), host)
		if err != nil {
			return nil, err
		}
		own = append(own, variable+"="+h.Addr())
	}
	return own, nil
}

// gate returns where the gate behind a hop listens.
func (s *session) gate(hop, target string) (addr string, err error) {
	g, err := proxy.NewGate(target)
	if err != nil {
		return "", err
	}
	s.gates[hop] = g
	s.closing = append(s.closing, g.Close)
	return g.Addr(), nil
}

func (s *session) hop(name, target string) (*proxy.Hop, error) {
	h, err := proxy.NewHop(target)
	if err != nil {
		return nil, err
	}
	s.hops[name] = h
	s.closing = append(s.closing, func() { h.Close() })
	return h, nil
}

// startAgents starts all agents, and returns when all watchers have been told the present state.
func (s *session) startAgents(ctx context.Context) error {
	for i, p := range s.plan.Groups {
		t := &group{Group: p, session: s, config: record.Config{
			Name: p.Name, Elections: s.plan.Elections, Seats: s.plan.Seats, Lease: s.plan.Lease, Pace: s.plan.Pace, Offset: p.Offset, Seed: s.plan.Seed + uint64(i)<<32,
			Members: p.Members, Ballots: s.plan.Ballots, Successors: s.plan.Successors, Lie: s.lie.Belief, Deaf: s.lie.Deaf,
		}}
		if err := s.connect(t); err != nil {
			return err
		}
		s.groups = append(s.groups, t)
		if err := t.start(); err != nil {
			return err
		}
	}
	for _, p := range s.plan.Wrappers {
		if err := s.startWrapper(p); err != nil {
			return err
		}
	}
	return s.awaitWatchers(ctx)
}

// connect connects a group to all servers and to the ledger.
func (s *session) connect(t *group) error {
	for _, v := range s.servers {
		h, err := s.hop(hopName(t.Name, v.name), v.address)
		if err != nil {
			return err
		}
		t.config.Servers = append(t.config.Servers, h.Addr())
	}
	h, err := s.hop(hopName(t.Name, ledgerName), s.ledger.listener.Addr().String())
	if err != nil {
		return err
	}
	t.config.Ledger = h.Addr()
	return nil
}

func (s *session) startWrapper(p Wrapper) error {
	v := s.servers[p.Server]
	h, err := s.hop(hopName(p.Name, v.name), v.address)
	if err != nil {
		return err
	}
	w := &wrapper{Wrapper: p, session: s, lifespans: filepath.Join(s.dir, p.Name+".lifespans")}
	if w.proxy, err = record.NewProxy(p.Name, h.Addr(), s.recorder); err != nil {
		return err
	}
	s.closing = append(s.closing, w.proxy.Close)
	if err := os.Mkdir(w.lifespans, 0o700); err != nil {
		return err
	}
	s.wrappers = append(s.wrappers, w)
	return w.start()
}

// awaitWatchers waits until all watchers have been told the present state.
func (s *session) awaitWatchers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		waited := s.unaware()
		if len(waited) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%v are not told the present state: %w", waited, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// unaware returns the watchers that have not been told the present state yet.
func (s *session) unaware() (names []string) {
	for _, t := range s.groups {
		for _, m := range t.Members {
			if name := t.life(m); m.Role == record.Watcher && !s.notes.expects(name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// part is a part of the run that is a process.
type part interface{ now() *process }

func (s *session) part(name string) part {
	if t := s.group(name); t != nil {
		return t
	}
	if w := s.wrapper(name); w != nil {
		return w
	}
	return s.server(name)
}

func (s *session) group(name string) *group {
	i := slices.IndexFunc(s.groups, func(t *group) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return s.groups[i]
}

func (s *session) wrapper(name string) *wrapper {
	i := slices.IndexFunc(s.wrappers, func(w *wrapper) bool { return w.Name == name })
	if i < 0 {
		return nil
	}
	return s.wrappers[i]
}

func (s *session) server(name string) *server {
	return s.servers[slices.IndexFunc(s.servers, func(v *server) bool { return v.name == name })]
}

// endAll ends everything that still runs. Idempotent.
func (s *session) endAll() {
	for _, t := range s.groups {
		if p := t.now(); p != nil {
			p.kill()
		}
	}
	for _, w := range s.wrappers {
		if p := w.now(); p != nil {
			p.kill()
		}
	}
	for _, v := range s.servers {
		if p := v.now(); p != nil {
			p.kill()
		}
	}
	for _, end := range slices.Backward(s.closing) {
		end()
	}
	s.closing = nil
	s.waiting.Wait()
}
