package clients_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
	"regent/test/clients"
)

// often is how often leases are renewed where a case waits for renewals: far more often than they
// must be, so that a machine that is busy loses none.
const often = 500 * time.Millisecond

// soon is the lease where a case waits for renewals that are repeated: how long a client waits for
// a reply, and rests after a failure, grows with the lease.
const soon = 20 * time.Second

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
	{name: "waits in line until a lease has run out", run: func(s *scene) {
		s.bobFor(3 * time.Second)
		d := s.start(clients.Options{})
		d.leads(2)
		d.stops()
	}},
	{name: "each renewal takes the ticket of the last reply", run: func(s *scene) {
		var given atomic.Int64
		s.gate.edit(func(x *exchange, reply map[string]any, _ http.Header) {
			if x.verb == wire.VerbAcquire || x.verb == wire.VerbRenew {
				reply["ticket"] = fmt.Sprintf("t%d", given.Add(1))
			}
		})
		s.gate.hurry(often)
		d := s.start(clients.Options{})
		d.leads(1)
		s.renews(4)
		d.stops()
		next, last := 0, 0
		for i, r := range s.gate.of(wire.VerbRenew) {
			n, _ := strconv.Atoi(strings.TrimPrefix(r.Ticket, "t"))
			switch {
			case n == i+1:
				next++
			case n == 0 || n < last:
				s.Errorf("renewal %d takes the ticket %q after ticket %d", i, r.Ticket, last)
			}
			last = n
		}
		if next < 3 { // those after a reply that came too late have an older one
			s.Errorf("%d renewals take the ticket of the last reply", next)
		}
	}},
	{name: "a report travels with a renewal", run: func(s *scene) {
		s.gate.hurry(often)
		d := s.start(clients.Options{})
		d.leads(1)
		d.tells("report 7")
		s.until("the report is there", func() bool { return strings.Contains(string(s.found().Report), `"progress":7`) })
		d.goesOn()
		d.stops()
	}},
	{name: "goes on under the token of a new epoch", run: func(s *scene) {
		s.gate.hurry(often)
		d := s.start(clients.Options{})
		d.leads(1)
		s.need(s.newEpoch())
		s.until("it has the new token", func() bool { return d.hasToken(2) })
		s.renews(1)
		d.goesOn()
		d.stops()
		s.vacant(2)
	}},
	{name: "hands over to the candidate in line", needs: []ability{handsOver}, run: func(s *scene) {
		d := s.start(clients.Options{})
		d.leads(1)
		bob := make(chan *client.Lease, 1)
		go func() { bob <- s.campaign() }()
		s.until("bob waits", func() bool { return s.waits("bob") })
		d.tells("call handover")
		d.awaits(clients.Done, 1)
		d.stops()
		l := <-bob
		if l == nil || l.Token() != 2 {
			s.Fatalf("bob does not lead\n%s", s.story())
		}
		s.need(l.Resign(s.Context()))
	}},
}

// campaign leads as bob, by the Go SDK, past the gate.
func (s *scene) campaign() *client.Lease {
	l, err := s.present.owner.As(client.Candidate{ID: "bob", LeaseDuration: s.lease}).Campaign(s.Context(), s.election)
	if err != nil {
		s.Error(err)
	}
	return l
}

// waits reports whether the candidate waits in line.
func (s *scene) waits(id leadership.CandidateID) bool {
	m, err := s.present.owner.Members(s.Context(), s.election)
	s.need(err)
	for _, one := range m.Members {
		if one.ID == id {
			return true
		}
	}
	return false
}
