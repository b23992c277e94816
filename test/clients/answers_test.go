package clients_test

import (
	"encoding/json"
	"net/http"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
	"regent/test/clients"
)

// answerTrials answer with what a server, or something before it, may answer.
var answerTrials = []trial{
	{name: "LEASE_LOST ends the term at once", run: func(s *scene) {
		s.gate.hurry(often)
		d := s.start(clients.Options{})
		d.leads(1)
		s.gate.on(wire.VerbRenew, always, say(leadership.LeaseLost))
		d.loses(leadership.LeaseLost)
		d.ends()
		if last := d.beliefs()[0].Until; last > s.gate.of(wire.VerbAcquire)[0].at+s.lease/2 {
			s.Errorf("it goes on until %v\n%s", last, s.story())
		}
	}},
	{name: "the election is deleted", run: func(s *scene) {
		s.gate.hurry(often)
		d := s.start(clients.Options{})
		d.leads(1)
		_, err := s.present.owner.Do(s.Context(), leadership.Delete{Election: s.election, Force: true})
		s.need(err)
		d.loses(leadership.LeaseLost, leadership.ElectionDeleted)
		d.ends()
		s.start(clients.Options{}).fails("lead", leadership.ElectionDeleted)
	}},
	{name: "STORE_UNAVAILABLE, DRAINING, RATE_LIMITED and other errors leave the lease as it is", lease: soon, run: func(s *scene) {
		s.survives(say(leadership.StoreUnavailable), say(wire.Draining), sayLater(wire.RateLimited), say(wire.Internal), say(wire.PermissionDenied), sayLater(leadership.StoreUnavailable))
	}},
	{name: "OUTCOME_UNKNOWN leaves the lease as it is", lease: soon, run: func(s *scene) {
		s.survives(sayDone(leadership.OutcomeUnknown), say(leadership.OutcomeUnknown))
	}},
	{name: "answers of something else than Regent leave the lease as it is", lease: soon, run: func(s *scene) {
		s.survives(
			foreign(http.StatusBadGateway, "text/html", "<h1>Bad gateway</h1>"), foreign(http.StatusNotFound, "text/html", "<h1>Not found</h1>"),
			foreign(http.StatusOK, "text/html", "<h1>Welcome</h1>"), foreign(http.StatusOK, "application/json", "{}"), foreign(http.StatusOK, "application/json", "[[[["),
		)
	}},
	{name: "STORE_UNAVAILABLE for longer than the lease", lease: 3 * time.Second, run: func(s *scene) { s.expires(say(leadership.StoreUnavailable)) }},
	{name: "OUTCOME_UNKNOWN extends nothing, though each renewal is done", lease: 3 * time.Second, run: func(s *scene) {
		s.expires(sayDone(leadership.OutcomeUnknown))
	}},
	{name: "a success for another election, candidate or token extends nothing", lease: 3 * time.Second, run: func(s *scene) {
		of := func(name string, value any) act {
			return instead(func(reply map[string]any) { reply[name] = value })
		}
		s.expires(inTurn(of("election", "others"), of("leaderId", "bob"), of("fencingToken", json.Number("7"))))
	}},
	{name: "acquire is answered STORE_UNAVAILABLE and OUTCOME_UNKNOWN", run: func(s *scene) {
		s.gate.on(wire.VerbAcquire, 3, inTurn(say(leadership.StoreUnavailable), sayDone(leadership.OutcomeUnknown), say(wire.Draining)))
		d := s.start(clients.Options{})
		d.leads(1)
		d.stops()
	}},
	{name: "acquire is refused for good", run: func(s *scene) {
		s.gate.on(wire.VerbAcquire, always, say(wire.PermissionDenied))
		s.start(clients.Options{}).fails("lead", wire.PermissionDenied)
		if n := len(s.gate.of(wire.VerbAcquire)); n != 1 {
			s.Errorf("it has asked %d times", n)
		}
	}},
	{name: "does not wait in line if it is not to", needs: []ability{try}, run: func(s *scene) {
		bob := s.bob()
		s.start(clients.Options{Try: true}).fails("lead", leadership.LeaseHeld)
		bob.release()
		d := s.start(clients.Options{Try: true})
		d.leads(2)
		d.stops()
	}},
	{name: "a server that fails at once is not asked in a rush", lease: soon, run: func(s *scene) {
		s.gate.hurry(often)
		s.gate.on(wire.VerbAcquire, 6, say(leadership.StoreUnavailable))
		d := s.start(clients.Options{})
		d.leads(1)
		s.gate.on(wire.VerbRenew, 6, say(leadership.StoreUnavailable))
		s.renews(1)
		for _, verb := range []wire.Verb{wire.VerbAcquire, wire.VerbRenew} {
			if all := s.gate.of(verb); all[5].at-all[0].at < 250*time.Millisecond {
				s.Errorf("it asks for %s six times within %v\n%s", verb, all[5].at-all[0].at, s.story())
			}
		}
		d.stops()
	}},
}

// survives checks that a leader goes on whose renewals are answered so, one after the other.
func (s *scene) survives(answers ...act) {
	s.Helper()
	s.gate.hurry(often)
	d := s.start(clients.Options{})
	d.leads(1)
	for _, a := range answers {
		s.gate.on(wire.VerbRenew, 1, a)
		s.renews(1)
	}
	d.goesOn()
	d.stops()
	s.vacant(1)
}

// expires checks that a leader stops in time all of whose renewals are answered so.
func (s *scene) expires(answer act) {
	s.Helper()
	d := s.start(clients.Options{})
	s.gate.on(wire.VerbRenew, always, answer)
	d.leadsAtAll()
	d.loses(clients.Deadline)
	d.ends()
}
