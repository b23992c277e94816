package clients_test

import (
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
	"regent/test/clients"
)

// watchTrials watch the election while its stream breaks.
var watchTrials = []trial{
	{name: "a watch whose stream is cut misses nothing", needs: []ability{watches}, run: func(s *scene) {
		s.watched("watch 0", func() {
			s.line.CutOff()
			s.bob().release()
			s.line.Heal()
		})
	}},
	{name: "a watch without a revision misses nothing either", needs: []ability{watches}, run: func(s *scene) {
		s.watched("watch", func() {
			s.line.CutOff()
			s.bob().release()
			s.line.Heal()
		})
	}},
	{name: "a stream that is cut in the middle of an event", needs: []ability{watches}, run: func(s *scene) {
		s.gate.on(wire.VerbWatch, 3, torn)
		s.watched("watch 0", func() { s.gate.on(wire.VerbWatch, 2, torn) })
	}},
	{name: "a stream that ends because of its age", stream: time.Second, needs: []ability{watches}, run: func(s *scene) {
		s.watched("watch 0", func() { s.asked(wire.VerbWatch, 3) })
	}},
	{name: "a stream whose server drains", needs: []ability{watches}, run: func(s *scene) {
		s.watched("watch 0", s.replace)
	}},
	{name: "a stream that is refused for a while", needs: []ability{watches}, run: func(s *scene) {
		s.gate.on(wire.VerbWatch, 3, inTurn(say(leadership.StoreUnavailable), sayLater(wire.RateLimited), foreign(502, "text/html", "<h1>Bad gateway</h1>")))
		s.watched("watch 0", func() {})
	}},
	{name: "a watch is told that the history is compacted", needs: []ability{watches}, run: func(s *scene) {
		s.gate.on(wire.VerbWatch, always, say(leadership.HistoryCompacted))
		d := s.start(clients.Options{Idle: true})
		d.tells("watch 1")
		d.fails("watch", leadership.HistoryCompacted)
	}},
}

// watched checks that a watch sees each event once and in order, though something happens.
func (s *scene) watched(command string, happens func()) {
	s.Helper()
	s.bob().release()
	d := s.start(clients.Options{Idle: true})
	d.tells(command)
	d.sees(s.found().Revision)
	happens()
	s.bob().release()
	d.sees(s.found().Revision)
	d.tells("stop")
	d.ends()
	var last int64
	for i, e := range d.seen() {
		switch {
		case i == 0 && e.Type == "", i == 0 && e.Revision == 1, i > 0 && e.Type != "" && e.Revision == last+1:
		default:
			s.Errorf("revision %d, %q, is seen after %d\n%s", e.Revision, e.Type, last, s.story())
		}
		last = e.Revision
	}
}

// sees waits until it has seen a revision.
func (p *process) sees(r leadership.Revision) {
	p.Helper()
	p.until(fmt.Sprintf("revision %d is seen", r), func() bool {
		seen := p.seen()
		return len(seen) > 0 && leadership.Revision(seen[len(seen)-1].Revision) >= r || p.isOver()
	})
}

func (p *process) seen() (all []clients.Event) {
	for _, e := range p.said() {
		if e.Event == clients.Seen {
			all = append(all, e)
		}
	}
	return all
}
