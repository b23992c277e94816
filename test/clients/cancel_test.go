package clients_test

import (
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
	"regent/test/checker"
	"regent/test/clients"
	"regent/test/faults/record"
)

// cancelTrials cancel what is under way.
var cancelTrials = []trial{
	{name: "cancelled in line", lease: soon, run: func(s *scene) {
		bob := s.bobFor(time.Hour)
		d := s.start(clients.Options{})
		s.until("the client is in line", func() bool { return s.waits("ann") })
		d.cancels()
		s.until("the server has lost its waiter", s.lostWaiter)
		bob.release()
		s.until("the election is vacant", func() bool { return s.found().State == leadership.Vacant })
	}},
	{name: "cancelled before the server has decided", run: func(s *scene) {
		s.gate.on(wire.VerbAcquire, always, ignore)
		d := s.start(clients.Options{})
		s.asked(wire.VerbAcquire, 1)
		d.cancels()
		s.vacant(0)
	}},
	{name: "cancelled between grant and reply: the lease is released", lease: time.Hour, needs: []ability{abandons}, run: func(s *scene) {
		s.gate.on(wire.VerbAcquire, always, keep)
		d := s.start(clients.Options{})
		s.until("it is granted a lease", func() bool { return s.found().State == leadership.Held })
		d.cancels()
		s.vacant(1)
	}},
	{name: "cancelled in a pause before the next try", run: func(s *scene) {
		s.gate.on(wire.VerbAcquire, always, say(leadership.StoreUnavailable))
		d := s.start(clients.Options{})
		s.asked(wire.VerbAcquire, 3)
		d.cancels()
		s.vacant(0)
	}},
	{name: "cancelled while it leads", run: func(s *scene) { s.cancelled(func(*process) {}) }},
	{name: "cancelled while a renewal is under way", run: func(s *scene) {
		s.gate.hurry(often)
		s.gate.on(wire.VerbRenew, always, keep)
		s.cancelled(func(*process) { s.asked(wire.VerbRenew, 1) })
	}},
	{name: "cancelled while a release is under way", run: func(s *scene) {
		d := s.start(clients.Options{})
		d.leads(1)
		s.gate.on(wire.VerbRelease, always, keep)
		d.tells("stop")
		s.asked(wire.VerbRelease, 1)
		d.tells("cancel")
		d.ends()
		s.vacant(1)
	}},
	cancelledCall("read", wire.VerbRead),
	cancelledCall("members", wire.VerbMembers),
	cancelledCall("checkpoint", wire.VerbPutCheckpoint),
	cancelledCall("check", wire.VerbCheckToken),
	cancelledCall("handover", wire.VerbHandOver),
	{name: "cancelled while it watches", needs: []ability{watches}, run: func(s *scene) {
		d := s.start(clients.Options{Idle: true})
		d.tells("watch")
		d.awaits(clients.Seen, 1)
		d.tells("cancel")
		d.ends()
		s.until("the stream is closed", func() bool { return s.gate.of(wire.VerbWatch)[0].gone })
	}},
}

// cancelledCall cancels a leader while it makes a call that is not answered.
func cancelledCall(kind string, verb wire.Verb) trial {
	return trial{name: "cancelled while another call is under way: " + kind, needs: []ability{callsToo}, run: func(s *scene) {
		s.gate.on(verb, always, ignore)
		s.cancelled(func(d *process) {
			d.tells("call " + kind)
			s.asked(verb, 1)
		})
	}}
}

// lostWaiter reports whether a call of the driver in line has ended without an answer. A grant at that
// very moment is possible, and is released, or ends.
func (s *scene) lostWaiter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.calls, func(l record.Line) bool {
		return l.Call != nil && l.Call.Verb == checker.Acquire && l.Call.Answered == checker.Forever
	})
}

// cancels cancels a driver that does not lead.
func (p *process) cancels() {
	p.Helper()
	p.tells("cancel")
	p.fails("lead", clients.Cancelled)
}

// cancelled cancels a leader, which releases its lease.
func (s *scene) cancelled(during func(*process)) {
	s.Helper()
	d := s.start(clients.Options{})
	d.leads(1)
	during(d)
	d.tells("cancel")
	d.awaits(clients.Released, 1)
	d.ends()
	s.vacant(1)
}
