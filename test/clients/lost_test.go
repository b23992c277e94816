package clients_test

import (
	"regent/leadership/wire"
	"regent/test/clients"
)

// lostTrials lose replies.
var lostTrials = []trial{
	{name: "the reply to acquire is lost, twice", run: func(s *scene) {
		s.gate.on(wire.VerbAcquire, 2, lose)
		d := s.start(clients.Options{})
		d.leads(1)
		d.stops()
		s.vacant(1)
	}},
	{name: "the reply to a renewal is lost", lease: soon, run: func(s *scene) {
		s.gate.hurry(often)
		d := s.start(clients.Options{})
		d.leads(1)
		s.gate.on(wire.VerbRenew, 1, lose)
		s.renews(2)
		d.goesOn()
		d.stops()
	}},
	{name: "the reply to a renewal never comes", lease: soon, run: func(s *scene) {
		s.gate.hurry(often)
		d := s.start(clients.Options{})
		d.leads(1)
		s.gate.on(wire.VerbRenew, 1, keep)
		s.renews(2)
		d.goesOn()
		d.stops()
	}},
	{name: "the reply to a release is lost", run: func(s *scene) {
		d := s.start(clients.Options{})
		d.leads(1)
		s.gate.on(wire.VerbRelease, 1, lose)
		d.stops()
		s.asked(wire.VerbRelease, 2)
		s.vacant(1)
	}},
	{name: "the reply to a release never comes", run: func(s *scene) {
		d := s.start(clients.Options{})
		d.leads(1)
		s.gate.on(wire.VerbRelease, always, keep)
		d.tells("stop")
		d.ends()
		s.vacant(1)
	}},
}
