package clients_test

import (
	"slices"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
	"regent/test/checker"
	"regent/test/clients"
)

// slack is by how much times of one clock may differ that went through JSON.
const slack = 10 * time.Millisecond

// judge holds everything that was recorded to what is true of every case.
func (s *scene) judge() {
	s.Helper()
	if s.Failed() {
		return
	}
	var beliefs []checker.Belief
	for _, p := range s.drivers {
		p.judgeTicks()
		p.judgeSecrets()
		beliefs = append(beliefs, p.beliefs()...)
	}
	s.judgeReleases()
	s.judgeKeys()
	if err := checker.All(s.recording(beliefs), slack, 0).Err(); err != nil {
		s.Errorf("%v\n%s", err, s.story())
	}
}

// recording is what was recorded, with the store's history.
func (s *scene) recording(beliefs []checker.Belief) checker.Recording {
	s.Helper()
	r := checker.Recording{Beliefs: beliefs}
	after := leadership.Revision(0)
	for {
		page, err := s.store.Events(s.Context(), s.election, after, 100)
		s.need(err)
		if len(page) == 0 {
			break
		}
		r.History, after = append(r.History, page...), page[len(page)-1].Revision
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.calls {
		if l.Call != nil {
			r.Calls = append(r.Calls, *l.Call)
		}
		if l.Failure != "" {
			s.Errorf("%s", l.Failure)
		}
	}
	slices.SortFunc(r.Calls, func(a, b checker.Call) int { return int(a.Asked - b.Asked) })
	for _, p := range s.drivers {
		r.Consumers = append(r.Consumers, p.consumers(r.History)...)
	}
	return r
}

// beliefs are from when until when the driver believed in each token.
func (p *process) beliefs() (all []checker.Belief) {
	for _, e := range p.said() {
		if e.Event != clients.Tick || !*e.Valid {
			continue
		}
		at, token := time.Duration(e.At), leadership.Token(e.Token)
		if n := len(all); n == 0 || all[n-1].Token != token {
			all = append(all, checker.Belief{Who: "ann", Election: p.election, Token: token, From: at})
		}
		all[len(all)-1].Until = at
	}
	return all
}

// consumers are the watches of the driver: one, of what it has seen.
func (p *process) consumers(history []leadership.Event) []checker.Consumer {
	c := checker.Consumer{Name: "ann", Elections: []leadership.Election{p.election}, Partial: true}
	watched := false
	for _, e := range p.said() {
		if e.Event != clients.Seen {
			continue
		}
		if e.Type == "" { // the state with which it begins
			c.After, watched = map[leadership.Election]leadership.Revision{p.election: leadership.Revision(e.Revision)}, true
			continue
		}
		if !watched && e.Revision > 1 {
			c.After = map[leadership.Election]leadership.Revision{p.election: leadership.Revision(e.Revision) - 1}
		}
		watched = true
		event := leadership.Event{Election: p.election, Revision: leadership.Revision(e.Revision)}
		if i := int(e.Revision) - 1; i < len(history) {
			event = history[i]
		}
		event.Type, event.Token = leadership.EventType(e.Type), leadership.Token(e.Token)
		c.Got = append(c.Got, event)
	}
	if !watched {
		return nil
	}
	return []checker.Consumer{c}
}

// judgeTicks checks that a lease that was over stays so, and that no belief, told or foretold, goes
// beyond what the answers gave that the driver can have had by then.
func (p *process) judgeTicks() {
	p.Helper()
	events := slices.DeleteFunc(slices.Clone(p.said()), func(e clients.Event) bool { return e.Event != clients.Tick })
	over := map[int64]bool{}
	for i, e := range events {
		switch {
		case e.Valid == nil:
			p.Fatalf("a tick that does not say whether the lease is valid\n%s", p.scene.story())
		case !*e.Valid:
			over[e.Token] = true
			continue
		case over[e.Token]:
			p.Errorf("the lease was over, and is valid again at %v\n%s", time.Duration(e.At), p.scene.story())
			return
		}
		next := int64(checker.Forever)
		if i+1 < len(events) {
			next = events[i+1].At
		}
		until := time.Duration(e.At)
		if e.RemainingMs != nil {
			until += time.Duration(*e.RemainingMs * float64(time.Millisecond))
		}
		if end := p.given(leadership.Token(e.Token), time.Duration(next)); until > end {
			p.Errorf("at %v it believes in token %d until %v, and no answer gave more than until %v\n%s",
				time.Duration(e.At), e.Token, until, end, p.scene.story())
			return
		}
	}
}

// given is until when a token is valid by the answers to what was asked before that time.
func (p *process) given(token leadership.Token, before time.Duration) (until time.Duration) {
	for _, r := range p.gate.all() {
		if r.at <= before && r.FencingToken == token {
			until = max(until, r.until)
		}
	}
	return until
}

// judgeSecrets checks that no key is in what the driver says.
func (p *process) judgeSecrets() {
	p.Helper()
	said := p.scene.story()
	for _, r := range p.gate.all() {
		if r.Key != "" && strings.Contains(said, r.Key) {
			p.Errorf("the key of the lease is in what the driver says\n%s", said)
			return
		}
	}
}

// judgeReleases checks that a lease was released only once its leader had stopped.
func (s *scene) judgeReleases() {
	s.Helper()
	for _, r := range s.gate.all() {
		if r.verb != wire.VerbRelease && r.verb != wire.VerbYield {
			continue
		}
		for _, p := range s.drivers {
			for _, b := range p.beliefs() {
				if b.Token == r.FencingToken && b.Until > r.at {
					s.Errorf("the release of token %d came at %v, and its leader went on until %v\n%s", b.Token, r.at, b.Until, s.story())
				}
			}
		}
	}
}

// judgeKeys checks that a key that was given up is never used to ask for a lease.
func (s *scene) judgeKeys() {
	s.Helper()
	spent := map[string]bool{}
	for _, r := range s.gate.all() {
		switch {
		case r.verb == wire.VerbRelease || r.verb == wire.VerbYield:
			spent[r.Key] = true
		case r.verb == wire.VerbAcquire && spent[r.Key]:
			s.Errorf("the key of a release asks for another lease\n%s", s.story())
		}
		if r.Key != "" && len(r.Key) != 43 {
			s.Errorf("%s has a key of %d characters, not 43", r.verb, len(r.Key))
		}
	}
}
