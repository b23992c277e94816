package checker

import (
	"maps"
	"slices"
	"time"

	"regent/leadership"
)

// elections are those of the truth, in order.
func (t truth) elections() []leadership.Election { return slices.Sorted(maps.Keys(t)) }

// term is the time under one token, by the history.
type term struct {
	granted leadership.Event
	ended   leadership.Event // zero if the history does not have it
}

func (t term) id() grantID { return grantID{t.granted.Election, t.granted.Token} }

// over reports whether the history has the end.
func (t term) over() bool { return t.ended.Revision > 0 }

// ends reports whether the event ends a lease.
func ends(e leadership.Event) bool {
	switch e.Type {
	case leadership.EventReleased, leadership.EventExpired, leadership.EventDeposed:
		return true
	case leadership.EventDeleted, leadership.EventUnlocked:
		return e.PreviousLeaderID != ""
	}
	return false
}

// begins reports whether the event begins a term: by a grant, or by the next token of the same
// leader.
func begins(e leadership.Event) bool {
	return e.Type == leadership.EventAcquired || e.Type == leadership.EventEpoch
}

// ranOut reports whether the event records a lease that was not renewed before its end.
func ranOut(e leadership.Event) bool {
	return e.Type == leadership.EventExpired || e.Type == leadership.EventDeposed && limitOf(e) != ""
}

// limitOf is why a lease ended that ran out at the end of what it was allowed; "" if it ran out
// before, or ended otherwise.
func limitOf(e leadership.Event) leadership.EndReason { return e.ReadDetail().EndsBecause }

// handedTo is the candidate that takes over from a leader whose term the event ends; "" if it ends
// otherwise.
func handedTo(e leadership.Event) leadership.CandidateID {
	if e.Type != leadership.EventReleased || limitOf(e) != leadership.EndsHandOver {
		return ""
	}
	return successorOf(e)
}

// reigns is, for each token that an epoch began, the token before, with which the same leader led.
func (t truth) reigns() map[grantID]leadership.Token {
	earlier := make(map[grantID]leadership.Token)
	for e, events := range t {
		for _, event := range events {
			if event.Type == leadership.EventEpoch {
				earlier[grantID{e, event.Token}] = event.Token - 1
			}
		}
	}
	return earlier
}

// reign names the tokens of one leader that has never stopped, by the last of them.
type reign map[grantID]leadership.Token

func (t truth) reign() reign {
	last := make(reign)
	earlier := t.reigns()
	for _, id := range slices.SortedFunc(maps.Keys(earlier), func(a, b grantID) int { return b.compare(a) }) {
		last[grantID{id.election, earlier[id]}] = last.of(id).token
	}
	return last
}

// of is the last token of the reign.
func (r reign) of(id grantID) grantID {
	if t, ok := r[id]; ok {
		id.token = t
	}
	return id
}

// unlocked are the tokens whose leaders may believe in them although a later one was granted: an
// operator has unlocked the election after them. It is the only exemption.
func (t truth) unlocked() map[grantID]bool {
	all := make(map[grantID]bool)
	for e, events := range t {
		for _, event := range events {
			if event.Type == leadership.EventUnlocked {
				all[grantID{e, event.Token}] = true
			}
		}
	}
	return all
}

// terms are those of one election, in order.
func (t truth) terms(e leadership.Election) []term {
	var terms []term
	for _, event := range t[e] {
		switch n := len(terms); {
		case event.Type == leadership.EventEpoch && n > 0 && terms[n-1].granted.Token == event.Token-1 && !terms[n-1].over():
			terms[n-1].ended = event
			terms = append(terms, term{granted: event})
		case begins(event):
			terms = append(terms, term{granted: event})
		case ends(event) && n > 0 && terms[n-1].granted.Token == event.Token && !terms[n-1].over():
			terms[n-1].ended = event
		}
	}
	return terms
}

// allTerms are those of all elections.
func (t truth) allTerms() map[grantID]term {
	all := make(map[grantID]term)
	for _, e := range t.elections() {
		for _, term := range t.terms(e) {
			if _, again := all[term.id()]; !again {
				all[term.id()] = term
			}
		}
	}
	return all
}

// promisesOf is, for each token, the greatest end of its lease in any answer.
func promisesOf(calls []Call) map[grantID]time.Time {
	promises := make(map[grantID]time.Time)
	for _, c := range calls {
		if a := c.Answer; a != nil && c.Answered != Forever && a.State == leadership.Held {
			if id := (grantID{c.Election, a.Token}); a.LeaseExpiration.After(promises[id]) {
				promises[id] = a.LeaseExpiration
			}
		}
	}
	return promises
}

// configsOf is, for each event that sets a configuration, that configuration: by the call that made
// it, or by an answer that shows it.
func configsOf(t truth, calls []Call) map[leadership.EventID]leadership.Config {
	configs := make(map[leadership.EventID]leadership.Config)
	asked := make(map[string]leadership.Config)
	configured := t.configured()
	for _, c := range calls {
		if c.Verb == Configure && c.Request != "" {
			asked[c.Request] = c.Config
		}
		if a := c.Answer; a != nil && int(a.Revision) < len(configured[c.Election]) {
			configs[leadership.EventID{Election: c.Election, Revision: configured[c.Election][a.Revision]}] = a.Config
		}
	}
	for _, events := range t {
		for _, event := range events {
			if config, ok := asked[event.RequestID]; ok && configures(event) {
				configs[event.ID()] = config
			}
		}
	}
	return configs
}

func configures(e leadership.Event) bool {
	return e.Type == leadership.EventConfigured || e.Type == leadership.EventRecreated
}

// configured is, for each election and revision from 0, the revision that set the configuration
// then in force; 0 if none did.
func (t truth) configured() map[leadership.Election][]leadership.Revision {
	configured := make(map[leadership.Election][]leadership.Revision, len(t))
	for e, events := range t {
		line := []leadership.Revision{0}
		for i, event := range events {
			by := line[i]
			if configures(event) {
				by = event.Revision
			}
			line = append(line, by)
		}
		configured[e] = line
	}
	return configured
}
