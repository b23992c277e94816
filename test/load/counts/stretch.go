package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/instance"
)

// A stretch uses leases a tenth as long as the default, so that everything that belongs to a lease
// happens ten times as often. What an hour costs is scaled by the number of leases in it.
const (
	stretchLease  = leadership.DefaultLeaseDuration / 10
	stretchLeases = 4 // in one stretch
	beats         = 3 // renewals in a lease
	leasesAnHour  = int(time.Hour / leadership.DefaultLeaseDuration)
	beatsAnHour   = beats * leasesAnHour
	perWait       = 4 * time.Second // then a candidate asks again
)

// Stretch is what a held election cost for some leases while so many others waited and watched.
type Stretch struct {
	Waiting, Watching int
	Begin             Cost // the arrival of those that came with it
	Lasting           Cost // from then to the end
}

// AnHour is what an hour of the same costs.
func (s Stretch) AnHour() Cost { return s.Lasting.scaled(leasesAnHour, stretchLeases) }

// Held is what was found of one held election.
type Held struct {
	Stretches []Stretch
	// a release by the leader and the grant to the first waiting candidate, with all agents present
	HandOver Cost
	// some leases at another instance, where candidates wait, while the leader renews at the first
	Elsewhere Cost
	// the same while the instances tell each other which leases they have renewed
	Told Cost
}

// Hold keeps one election held at a whole instance, with as many waiting and watching as the
// stretches say; agents that have come stay. Each stretch takes twelve seconds.
func Hold(ctx context.Context, p Place, stretches []Stretch) (held Held, err error) {
	ctx, end := context.WithCancel(ctx)
	topic, sheets := newBus(), newMemberBus()
	here, err := raise(ctx, p, topic, sheets, "here")
	if err != nil {
		end()
		return Held{}, err
	}
	defer func() { err = errors.Join(err, here.lower()) }()
	defer end()
	if err := here.lead(ctx); err != nil {
		return Held{}, err
	}
	if held.Stretches, err = here.stretches(ctx, stretches); err != nil {
		return Held{}, err
	}
	if held.Elsewhere, err = here.elsewhere(ctx, p, topic, nil); err != nil {
		return Held{}, err
	}
	if held.Told, err = here.elsewhere(ctx, p, topic, sheets); err != nil {
		return Held{}, err
	}
	held.HandOver, err = here.handOver(ctx)
	return held, err
}

// site is an instance at work, with the agents there.
type site struct {
	handle  Handle
	inst    *instance.Instance
	leader  leadership.LeaseRequest
	waiting int
	watches int

	crowd   sync.WaitGroup
	failed  chan error            // the first failure of an agent; of one
	granted chan leadership.Grant // of one
}

const contested leadership.Election = "contested"

// raise starts an instance. Without a bus for members it hears nothing of renewals at others.
func raise(ctx context.Context, p Place, b *bus, sheets *memberBus, name string) (*site, error) {
	h, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	c := instance.Config{Store: h, Name: name, Bus: b}
	if sheets != nil {
		c.Members = sheets
	}
	inst, err := instance.New(c)
	if err != nil {
		h.Close()
		return nil, err
	}
	s := &site{handle: h, inst: inst, failed: make(chan error, 1), granted: make(chan leadership.Grant, 1)}
	s.crowd.Go(func() { inst.Run(ctx) })
	return s, nil
}

// lower returns once all have gone, after the end of the context that the site was raised with.
func (s *site) lower() error {
	s.crowd.Wait()
	err := s.handle.Close()
	select {
	case failed := <-s.failed:
		return errors.Join(failed, err)
	default:
		return err
	}
}

func (s *site) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

func (s *site) lead(ctx context.Context) error {
	ann := newAgent("ann")
	ask := ann.ask(contested)
	ask.LeaseDuration = stretchLease
	g, err := s.inst.Acquire(ctx, ask)
	s.leader = ann.lease(contested, g.Token)
	return err
}

// keep renews for so many leases.
func (s *site) keep(ctx context.Context, leases int) error {
	beat := time.NewTicker(stretchLease / beats)
	defer beat.Stop()
	for range leases * beats {
		select {
		case <-beat.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if _, err := s.inst.Renew(ctx, s.leader); err != nil {
			return err
		}
	}
	return nil
}

// stretches lets one follow on the other.
func (s *site) stretches(ctx context.Context, all []Stretch) (found []Stretch, err error) {
	for _, want := range all {
		if want, err = s.stretch(ctx, want); err != nil {
			return nil, err
		}
		found = append(found, want)
	}
	return found, nil
}

// stretch lets the agents come that are missing, and then some leases pass.
func (s *site) stretch(ctx context.Context, want Stretch) (Stretch, error) {
	s.handle.Take()
	for ; s.waiting < want.Waiting; s.waiting++ {
		a := newAgent(leadership.CandidateID(fmt.Sprintf("c%05d", s.waiting)))
		s.crowd.Go(func() { s.wait(ctx, a) })
	}
	for ; s.watches < want.Watching; s.watches++ {
		s.crowd.Go(func() { s.watch(ctx) })
	}
	if err := s.keep(ctx, 1); err != nil { // by then all are there
		return want, err
	}
	begin, _ := s.handle.Take()
	err := s.keep(ctx, stretchLeases)
	want.Lasting, _ = s.handle.Take()
	// without the renewals meanwhile
	want.Begin = begin.minus(want.Lasting.scaled(1, stretchLeases))
	return want, err
}

// wait waits to lead, and asks again whenever a wait is over.
func (s *site) wait(ctx context.Context, a agent) {
	ask := a.ask(contested)
	ask.Wait = perWait
	for {
		g, err := s.inst.Acquire(ctx, ask)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			s.stay(ctx, g)
			return
		case !errors.Is(err, leadership.LeaseHeld):
			s.fail(fmt.Errorf("a waiting candidate: %w", err))
			return
		}
	}
}

// stay hands over the grant of a candidate that leads, and keeps it until the end.
func (s *site) stay(ctx context.Context, g leadership.Grant) {
	select {
	case s.granted <- g:
		<-ctx.Done()
	case <-ctx.Done():
	}
}

// watch watches.
func (s *site) watch(ctx context.Context) {
	_, w, err := s.inst.Watch(ctx, leadership.WatchRequest{Election: contested})
	if err != nil {
		s.fail(fmt.Errorf("a watcher: %w", err))
		return
	}
	defer w.Close()
	for ctx.Err() == nil {
		if _, err := w.Next(ctx); err != nil && ctx.Err() == nil {
			s.fail(fmt.Errorf("a watcher: %w", err))
			return
		}
	}
}

// handOver lets the leader release and the first waiting candidate lead.
func (s *site) handOver(ctx context.Context) (Cost, error) {
	s.handle.Take()
	if _, err := s.inst.Release(ctx, s.leader); err != nil {
		return Cost{}, err
	}
	select {
	case <-s.granted:
	case err := <-s.failed:
		return Cost{}, err
	case <-ctx.Done():
		return Cost{}, ctx.Err()
	}
	asked, _ := s.handle.Take()
	return asked, nil
}

// elsewhere is what some leases cost an instance where ten candidates wait, but not the leader.
func (s *site) elsewhere(ctx context.Context, p Place, b *bus, sheets *memberBus) (cost Cost, err error) {
	ctx, end := context.WithCancel(ctx)
	there, err := raise(ctx, p, b, sheets, "there")
	if err != nil {
		end()
		return Cost{}, err
	}
	defer func() { err = errors.Join(err, there.lower()) }()
	defer end()
	for i := range 10 {
		a := newAgent(leadership.CandidateID(fmt.Sprintf("far%d-%t", i, sheets != nil)))
		there.crowd.Go(func() { there.wait(ctx, a) })
	}
	if err := s.keep(ctx, 1); err != nil {
		return Cost{}, err
	}
	there.handle.Take()
	err = s.keep(ctx, stretchLeases)
	cost, _ = there.handle.Take()
	return cost, err
}
