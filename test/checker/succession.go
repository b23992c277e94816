package checker

import (
	"encoding/json"
	"slices"
	"time"

	"regent/leadership"
)

// HO checks that a term is handed over in its steps, without a gap, and to no other candidate:
//
//   - a candidate is ready only after it was named: by the leader, by an operator's assignment, or
//     by its challenge;
//   - a leader yields only to a candidate that is ready;
//   - a lease is handed over only after a yield, to that candidate and, if the calls are recorded,
//     to the key that was ready. No other key was told that it is ready for the same term;
//   - the end of the old term and the grant are one instant, and no answer shows a vacancy between;
//   - a leader that has yielded is not renewed, and its token is not said to be current;
//   - no other candidate is granted the lease before the successor's time is over, as far as an
//     answer tells it.
//
// Guard is by how much the clocks of the store's servers may differ.
func HO(r Recording, guard time.Duration) Report {
	truth, report := truthOf(r.History)
	h := handing{
		report: &report, guard: guard, asked: make(map[string]*Call), waits: make(map[grantID][]*leadership.Lease),
		gaps: make(map[leadership.EventID]bool), yields: make(map[grantID]leadership.Event),
	}
	for i := range r.Calls {
		h.index(&r.Calls[i])
	}
	for _, e := range truth.elections() {
		h.begin()
		h.assigned = nil
		for i, event := range truth[e] {
			h.follow(event, truth[e][i+1:])
		}
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		if c.Answer != nil && c.Answered != Forever {
			h.shown(c)
		}
		h.goesOn(c)
	}
	for _, x := range r.Readings {
		if x.State == leadership.Vacant && h.gaps[leadership.EventID{Election: x.Election, Revision: x.Revision}] {
			report.add(Gap, "%+v shows a vacancy within a hand-over", x)
		}
	}
	return report
}

// handing goes through the events of one election after the other.
type handing struct {
	report *Report
	guard  time.Duration
	asked  map[string]*Call                // by the ids of the calls
	waits  map[grantID][]*leadership.Lease // the answers that show a leader that has yielded
	gaps   map[leadership.EventID]bool     // the ends of terms that were handed over
	yields map[grantID]leadership.Event

	assigned   []standing // by operators, ended or not
	named      leadership.CandidateID
	challenged bool
	ready      leadership.Event // of the successor; zero if there is none
	stands     bool             // no order has come since that may have made it void
	yielded    leadership.Event
	left       time.Time // until when the successor has its time; zero if that is not known
	taken      leadership.Event
}

// begin forgets the term before.
func (h *handing) begin() {
	h.named, h.challenged, h.ready, h.stands = "", false, leadership.Event{}, false
	h.yielded, h.left, h.taken = leadership.Event{}, time.Time{}, leadership.Event{}
}

// index makes what is looked for in the calls quick to find. There may be very many.
func (h *handing) index(c *Call) {
	if c.Request != "" {
		h.asked[c.Request] = c
	}
	if a := c.Answer; a != nil && a.Succession.Yielded && a.State == leadership.Held && c.shows() {
		id := grantID{c.Election, a.Token}
		h.waits[id] = append(h.waits[id], a)
	}
}

func (h *handing) follow(e leadership.Event, rest []leadership.Event) {
	switch e.Type {
	case leadership.EventAssigned:
		h.assigned = append(h.assigned, standingOf(e))
	case leadership.EventHandingOver:
		if !byLeader(e) {
			h.challenged = true
			return
		}
		if h.named = successorOf(e); h.ready.Revision > 0 && readyOf(h.ready) != h.named {
			h.ready = leadership.Event{}
		}
	case leadership.EventBanned, leadership.EventEvicted, leadership.EventPaused, leadership.EventGoesOn:
		h.stands = false
	case leadership.EventReady:
		h.isReady(e)
	case leadership.EventYielded:
		h.report.Checked++
		if to := successorOf(e); h.ready.Revision == 0 || readyOf(h.ready) != to {
			h.report.add(Unready, "%s says %s, and that candidate had not said that it is ready", shown(e), e.Detail)
		}
		h.yielded, h.yields[grantID{e.Election, e.Token}] = e, e
		h.left = h.leftAfter(e)
	case leadership.EventAcquired:
		h.granted(e)
		h.begin()
	case leadership.EventReleased:
		if handedTo(e) != "" {
			h.hands(e, rest)
		} else if h.yielded.Revision > 0 {
			h.report.add(Untrue, "%s: its leader had yielded at %s", shown(e), stamp(h.yielded.At))
		}
	case leadership.EventExpired:
		if h.yielded.Revision > 0 && e.At.Before(h.left.Add(-h.guard)) {
			h.report.add(Stolen, "%s: the successor %q had its time until %s", shown(e), successorOf(h.yielded), stamp(h.left))
		}
	}
}

// isReady checks a candidate that is ready.
func (h *handing) isReady(e leadership.Event) {
	who := readyOf(e)
	if who == e.LeaderID { // of its own term
		return
	}
	h.report.Checked++
	assigned := slices.ContainsFunc(h.assigned, func(o standing) bool { return o.CandidateID == who && e.At.Before(o.Until.Add(h.guard)) })
	if who == "" || who != h.named && !assigned && !h.challenged {
		h.report.add(Stolen, "%s says %s, and %q was named", shown(e), e.Detail, h.named)
	}
	if h.stands && readyOf(h.ready) == who {
		h.report.add(Stolen, "%s comes after %s: another key has said it", shown(e), shown(h.ready))
	}
	h.ready, h.stands = e, true
}

// hands checks the end of a term that was handed over.
func (h *handing) hands(e leadership.Event, rest []leadership.Event) {
	h.report.Checked++
	to := handedTo(e)
	switch {
	case h.yielded.Revision == 0:
		h.report.add(Unasked, "%s was handed over to %q, and its leader had not yielded", shown(e), to)
	case successorOf(h.yielded) != to:
		h.report.add(Stolen, "%s was handed over to %q, and its leader had yielded to %q", shown(e), to, successorOf(h.yielded))
	}
	if len(rest) == 0 || rest[0].Type != leadership.EventAcquired || rest[0].LeaderID != to || !rest[0].At.Equal(e.At) || rest[0].RequestID != e.RequestID {
		h.report.add(Gap, "%s was handed over to %q, which was not granted the lease in the same instant", shown(e), to)
		return
	}
	h.taken = e
	h.gaps[e.ID()] = true
}

// granted checks the key of a candidate that took over.
func (h *handing) granted(e leadership.Event) {
	if h.taken.Revision == 0 || h.taken.Revision != e.Revision-1 {
		return
	}
	ready, isKnown := h.asked[h.ready.RequestID]
	took, isToo := h.asked[e.RequestID]
	if isKnown && isToo && (ready.Key != took.Key || ready.Candidate != took.Candidate) {
		h.report.add(Stolen, "%s was granted to another incarnation than that which was ready: %v, %v", shown(e), took, ready)
	}
}

// shown checks what an answer tells.
func (h *handing) shown(c *Call) {
	if a := c.Answer; a.State == leadership.Vacant && h.gaps[leadership.EventID{Election: c.Election, Revision: a.Revision}] {
		h.report.add(Gap, "%v shows a vacancy within a hand-over", c)
	}
}

// goesOn checks that a leader that has yielded is not treated as one.
func (h *handing) goesOn(c *Call) {
	if !c.done() || c.Answer == nil || c.Verb != Check && !c.beat() {
		return
	}
	token := c.Answer.Token
	if c.Verb == Check {
		token = c.Token
	}
	if y, ok := h.yields[grantID{c.Election, token}]; ok && c.at().After(y.At.Add(h.guard)) {
		h.report.add(Unstopped, "%v: the leader had yielded at %s", c, stamp(y.At))
	}
}

// leftAfter is until when the successor may take the lease after a yield, as an answer shows it.
// What a candidate was told while it waited may be older.
func (h *handing) leftAfter(e leadership.Event) time.Time {
	for _, a := range h.waits[grantID{e.Election, e.Token}] {
		if a.Revision >= e.Revision {
			return a.LeaseExpiration
		}
	}
	return time.Time{}
}

// PA checks the leases that stand on others:
//
//   - the end that they were known to have is one that they were promised. Not checked if a
//     heartbeat of the parent may have been lost, or is not recorded, or the parent is a peer's;
//   - none is granted on one that its leader had given up, or lost, before;
//   - where a policy says whose leaders may lead, the leader led that election with that token;
//   - what an election delegates is counted, and within the limits that are known.
//
// That no lease lasts beyond that end is checked by Limits, and what its leader believes by ME2.
func PA(r Recording, guard time.Duration) Report {
	truth, report := truthOf(r.History)
	terms, promises := truth.allTerms(), promisesOf(r.Calls)
	unsure := make(map[leadership.Election]bool)
	recorded := make(map[grantID]bool)
	for _, c := range r.Calls {
		if c.unknown() && (c.Verb == Acquire || c.Verb == Renew) {
			unsure[c.Election] = true
		}
		if c.beat() {
			recorded[grantID{c.Election, c.Answer.Token}] = true
		}
	}
	configs := configsOf(truth, r.Calls)
	for _, e := range truth.elections() {
		checkDelegated(&report, truth[e], configs)
	}
	for _, c := range r.Calls {
		if !c.shows() || c.Answer.State != leadership.Held || c.Answer.Parent.Token == 0 || c.Answer.Parent.Peer != "" {
			continue
		}
		report.Checked++
		p := c.Answer.Parent
		id := grantID{p.Election, p.Token}
		term, granted := terms[id]
		switch of := c.Answer.Config.LeadersOf; {
		case !granted:
			report.add(Phantom, "%v: it stands on token %d of election %q, which was never granted", c, p.Token, p.Election)
		case of != "" && term.granted.LeaderID != c.Answer.LeaderID:
			report.add(Untrue, "%v: it stands on the lease of %q", c, term.granted.LeaderID)
		case c.granted(terms) && term.endedEarly() && term.ended.At.Add(guard).Before(c.Answer.LastHeartbeat):
			report.add(Outlived, "%v: it was granted on a lease that had ended at %s", c, stamp(term.ended.At))
		case recorded[id] && !unsure[p.Election] && p.Until.After(promises[id]):
			report.add(Unlimited, "%v: it stands on a lease until %s, which was promised until %s", c, stamp(p.Until), stamp(promises[id]))
		}
	}
	return report
}

// granted reports whether the answer shows the grant itself, and no later heartbeat.
func (c Call) granted(terms map[grantID]term) bool {
	return c.Verb == Acquire && c.done() && c.Answer.LastHeartbeat.Equal(terms[grantID{c.Election, c.Answer.Token}].granted.At)
}

// endedEarly reports whether the term ended before its lease did.
func (t term) endedEarly() bool {
	return t.over() && !ranOut(t.ended) && t.ended.Type != leadership.EventEpoch
}

// checkDelegated counts what an election has delegated since its limits were configured.
func checkDelegated(report *Report, events []leadership.Event, configs map[leadership.EventID]leadership.Config) {
	var limits leadership.Delegation
	var children int
	var budget int64
	for _, e := range events {
		if configures(e) {
			if now := configs[e.ID()].Delegation; now != limits {
				limits, children, budget = now, 0, 0
			}
		}
		if e.Type != leadership.EventDelegated {
			continue
		}
		report.Checked++
		var d struct {
			Budget int64
			Depth  int
		}
		if err := json.Unmarshal([]byte(e.Detail), &d); err != nil {
			report.add(Untrue, "%s says %s", shown(e), e.Detail)
			continue
		}
		children, budget = children+1, budget+d.Budget
		most := limits.Limits()
		if children > most.Children || d.Depth >= most.Depth || most.Budget > 0 && budget > most.Budget {
			report.add(Unlimited, "%s says %s, and its limits are %+v, of which %d of the budget are used", shown(e), e.Detail, most, budget)
		}
	}
}

// byLeader reports whether a leader has named its successor itself.
func byLeader(e leadership.Event) bool {
	var detail struct{ Because leadership.EndReason }
	return e.Type == leadership.EventHandingOver && json.Unmarshal([]byte(e.Detail), &detail) == nil && detail.Because == leadership.EndsHandOver
}

// readyOf is the candidate that is ready.
func readyOf(e leadership.Event) leadership.CandidateID {
	if e.Type != leadership.EventReady {
		return ""
	}
	return standingOf(e).CandidateID
}

// endsByOf is the end that a hand-over sets.
func endsByOf(e leadership.Event) time.Time {
	var detail struct{ EndsBy time.Time }
	_ = json.Unmarshal([]byte(e.Detail), &detail) // zero if it says none
	return detail.EndsBy
}
