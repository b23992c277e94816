package checker

import (
	"time"

	"regent/leadership"
)

// atOnce is how long a leader may wait for the answer to its own acquire, in real processes: some
// round trips to the store, and what a busy machine takes.
const atOnce = time.Second

// Own checks that a leader is not kept waiting for its own lease: a call of acquire by the
// candidate and the key that lead by an earlier call, on the same connection, is answered at once,
// and not put in line behind its own lease.
//
// A violation is a second without a fault in which the call was not answered although the
// candidate certainly led: after the grant must have been committed, and before the lease can have
// ended.
func Own(r Recording) Report {
	truth, report := truthOf(r.History)
	commits := commitsOf(truth, r)
	all := liveness{recording: r}
	grants := make(map[seeker][]lifetime)
	asked := make(map[string]Call)
	for _, c := range r.Calls {
		if c.Verb == Acquire && c.Request != "" {
			asked[c.Request] = c
		}
	}
	for _, e := range truth.elections() {
		for _, t := range truth.terms(e) {
			if c, ok := asked[t.granted.RequestID]; ok && c.Candidate == t.granted.LeaderID {
				of := seeker{c.Caller, e, c.Candidate, c.Key}
				grants[of] = append(grants[of], lifetimeOf(t, c, commits[e]))
			}
		}
	}
	for _, c := range r.Calls {
		if c.Verb != Acquire || !c.done() && c.Code != leadership.LeaseHeld {
			continue
		}
		for _, g := range grants[seeker{c.Caller, c.Election, c.Candidate, c.Key}] {
			if g.request == c.Request {
				continue
			}
			report.Checked++
			for _, left := range all.quiet(g.waited(c)) {
				if left.until-left.from > atOnce {
					report.add(Kept, "%v: it led with token %d, and was not answered from %v to %v", c, g.token, left.from, left.until)
				}
			}
		}
	}
	return report
}

// seeker is a candidate with its key, on one connection.
type seeker struct {
	caller    string
	election  leadership.Election
	candidate leadership.CandidateID
	key       leadership.KeyHash
}

// lifetime is when a lease certainly lasted, by the call that was granted it.
type lifetime struct {
	request string
	token   leadership.Token
	at      time.Time // of the grant, by the store's clock
	certain span
}

// lifetimeOf is that of a term which the call began. Without a renewal it lasts at least as long as
// the call has asked for, unless it is ended before.
func lifetimeOf(t term, by Call, line []commit) lifetime {
	granted := line[t.granted.Revision-1]
	l := lifetime{by.Request, t.granted.Token, t.granted.At, span{granted.latest, granted.earliest}}
	if granted.earliest > 0 {
		l.certain.until += by.Lease
	}
	if t.over() {
		ended := line[t.ended.Revision-1].earliest
		switch {
		case limitOf(t.ended) != "":
			return lifetime{request: l.request, token: l.token, at: l.at} // it may have ended before it was due
		case t.ended.Type != leadership.EventExpired:
			l.certain.until = ended
		}
		l.certain.until = max(l.certain.until, ended)
	} else if a := by.Answer; a != nil && !a.EndsBy.IsZero() {
		return lifetime{request: l.request, token: l.token, at: l.at}
	}
	return l
}

// waited is the time during which the call certainly waited and its candidate led. An answer that
// shows the lease shows also, by the store's clock, how long after the grant it was given.
func (l lifetime) waited(c Call) span {
	s := span{max(c.Asked, l.certain.from), min(c.Answered, l.certain.until)}
	if c.done() && c.Answer != nil && c.Answer.Token == l.token {
		since := min(c.Answer.LastHeartbeat.Sub(l.at), c.Answered-c.Asked)
		s = span{min(s.from, c.Answered-since), c.Answered}
	}
	return s
}
