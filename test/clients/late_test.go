package clients_test

import (
	"time"

	"regent/leadership/wire"
	"regent/test/clients"
)

// lateTrials delay replies.
var lateTrials = []trial{
	{name: "the grant comes late, and then no answer", lease: 5 * time.Second, run: func(s *scene) {
		s.gate.on(wire.VerbAcquire, 1, late(2500*time.Millisecond))
		s.gate.on(wire.VerbRenew, always, ignore)
		d := s.start(clients.Options{})
		d.leadsAtAll()
		d.loses(clients.Deadline)
		d.ends()
	}},
	{name: "the grant comes after its lease has ended", lease: 3 * time.Second, run: func(s *scene) {
		s.gate.hurry(often)
		s.gate.on(wire.VerbAcquire, 1, late(4*time.Second))
		d := s.start(clients.Options{})
		if token := d.leadsAtAll(); token == 1 {
			s.Errorf("it leads with token %d, whose lease has ended\n%s", token, s.story())
		}
		d.leaves()
	}},
	{name: "the reply to a renewal comes after the deadline", lease: 3 * time.Second, run: func(s *scene) {
		come := make(chan struct{})
		s.gate.on(wire.VerbRenew, always, after(come))
		d := s.start(clients.Options{})
		d.leadsAtAll()
		d.loses(clients.Deadline)
		close(come)
		d.ends()
	}},
	{name: "the reply to a renewal comes after that to a later one", lease: soon, run: func(s *scene) {
		come := make(chan struct{})
		s.gate.hurry(often)
		s.gate.on(wire.VerbRenew, 1, after(come))
		d := s.start(clients.Options{})
		d.leads(1)
		s.renews(2)
		close(come)
		s.renews(1)
		d.goesOn()
		d.stops()
	}},
}
