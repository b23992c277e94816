package clients_test

import (
	"syscall"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
	"regent/test/clients"
	"regent/test/proxy"
)

// away is how long a server is away, or a client is stopped, for less than a lease.
const away = 2 * time.Second

// awayTrials have the server, or the client, away for a while.
var awayTrials = []trial{
	{name: "the server is cut off for less than the lease", run: func(s *scene) { s.short((*proxy.Hop).CutOff) }},
	{name: "the server is silent for less than the lease", run: func(s *scene) { s.short((*proxy.Hop).Stall) }},
	{name: "the server is cut off for longer than the lease", lease: 3 * time.Second, run: func(s *scene) { s.long((*proxy.Hop).CutOff) }},
	{name: "the server is silent for longer than the lease", lease: 3 * time.Second, run: func(s *scene) { s.long((*proxy.Hop).Stall) }},
	{name: "the server is cut off while the client waits in line", run: func(s *scene) {
		bob := s.bob()
		d := s.start(clients.Options{})
		s.asked(wire.VerbAcquire, 1)
		s.line.CutOff()
		s.until("the server has noticed", func() bool { return s.gate.of(wire.VerbAcquire)[0].gone })
		s.line.Heal()
		s.asked(wire.VerbAcquire, 2)
		bob.release()
		d.leads(2)
		d.stops()
	}},
	{name: "the server drains, and another one serves", run: func(s *scene) {
		s.gate.hurry(often)
		bob := s.bob()
		d := s.start(clients.Options{})
		s.asked(wire.VerbAcquire, 1)
		s.replace()
		s.asked(wire.VerbAcquire, 2)
		(&other{s, bob.LeaseRequest}).release()
		d.leads(2)
		s.replace()
		s.renews(2)
		d.goesOn()
		d.stops()
	}},
	{name: "the client leads again, with a new key, after it has lost its lease", lease: 3 * time.Second, needs: []ability{again}, run: func(s *scene) {
		d := s.start(clients.Options{Again: true})
		token := d.leadsAtAll()
		s.line.CutOff()
		d.leadsLost()
		s.line.Heal()
		if e := d.awaits(clients.Leading, 2); leadership.Token(e.Token) <= token {
			s.Errorf("it leads with token %d after %d\n%s", e.Token, token, s.story())
		}
		all := s.gate.of(wire.VerbAcquire)
		if first, last := all[0], all[len(all)-1]; first.Key == last.Key {
			s.Errorf("it leads again with the same key\n%s", s.story())
		}
		d.leaves()
	}},
	{name: "the client is stopped for less than the lease", run: func(s *scene) {
		s.gate.hurry(often)
		d := s.start(clients.Options{})
		d.leads(1)
		d.pauses()
		<-time.After(away)
		d.signal(syscall.SIGCONT)
		s.renews(2)
		d.goesOn()
		d.stops()
	}},
	{name: "the client is stopped for longer than the lease, and another leads", lease: 3 * time.Second, needs: []ability{stopped}, run: func(s *scene) {
		d := s.start(clients.Options{})
		d.leadsAtAll()
		d.pauses()
		s.bob()
		d.signal(syscall.SIGCONT)
		d.loses(clients.Deadline, leadership.LeaseLost)
		d.ends()
	}},
	{name: "the client is stopped while it waits, and is granted a lease that ends", lease: 3 * time.Second, run: func(s *scene) {
		bob := s.bobFor(patience)
		d := s.start(clients.Options{})
		s.asked(wire.VerbAcquire, 1)
		d.pauses()
		bob.release()
		s.until("the client is granted a lease", func() bool { return s.found().Token == 2 })
		s.until("its lease has ended", func() bool { return s.found().State == leadership.Vacant })
		d.signal(syscall.SIGCONT)
		if token := d.leadsAtAll(); token == 2 {
			s.Errorf("it leads with token 2, whose lease has ended\n%s", s.story())
		}
		d.leaves()
	}},
}

// short checks that a leader outlives a short while without a server.
func (s *scene) short(harm func(*proxy.Hop)) {
	s.Helper()
	s.gate.hurry(often)
	d := s.start(clients.Options{})
	d.leads(1)
	harm(s.line)
	d.ticksFor(away)
	s.line.Heal()
	s.renews(2)
	d.goesOn()
	d.stops()
	s.vacant(1)
}

// long checks that a leader stops in time without a server, and stays so when the server is back.
func (s *scene) long(harm func(*proxy.Hop)) {
	s.Helper()
	d := s.start(clients.Options{})
	d.leadsAtAll()
	harm(s.line)
	d.loses(clients.Deadline)
	s.line.Heal()
	d.ends()
	s.until("the election is vacant", func() bool { return s.found().State == leadership.Vacant })
}

// leadsLost waits until its first term is lost. A wrapper that leads again does not say so: its
// command is gone.
func (p *process) leadsLost() {
	p.Helper()
	if p.kind.wrapper == nil {
		p.loses(clients.Deadline)
		return
	}
	p.until("the lease has ended", func() bool { return p.found().State == leadership.Vacant })
}
