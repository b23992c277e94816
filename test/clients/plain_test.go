package clients_test

import (
	"time"

	"regent/leadership/wire"
	"regent/test/clients"
)

// often is how often leases are renewed where a case waits for renewals: far more often than they
// must be, so that a machine that is busy loses none.
const often = 500 * time.Millisecond

// plainTrials break nothing.
var plainTrials = []trial{
	{name: "leads, renews, stops, and then releases", run: func(s *scene) {
		s.gate.hurry(often)
		d := s.start(clients.Options{})
		d.leads(1)
		s.renews(3)
		d.stops()
		s.vacant(1)
	}},
	{name: "waits in line until the leader releases", run: func(s *scene) {
		bob := s.bob()
		d := s.start(clients.Options{})
		s.asked(wire.VerbAcquire, 1)
		bob.renew()
		bob.release()
		d.leads(2)
		d.stops()
		s.vacant(2)
	}},
	{name: "waits in line until a lease has run out", lease: 3 * time.Second, run: func(s *scene) {
		s.bob()
		d := s.start(clients.Options{})
		d.leads(2)
		d.stops()
	}},
}
