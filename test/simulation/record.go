package simulation

import (
	"errors"
	"fmt"
	"time"

	"regent/leadership"
	"regent/test/checker"
)

// record makes a Recording. A nil one records nothing.
type record struct {
	w         *timeline
	wait      time.Duration // of a candidate that waits
	skewed    bool          // the store's clock leaps: nothing is said of how long leases last
	recording checker.Recording
}

// asked records that an agent makes a call, and returns the call's place.
func (r *record) asked(a *agent, c checker.Call) int {
	if r == nil {
		return 0
	}
	c.Caller, c.Election, c.Candidate = a.who(), a.election, a.name
	return r.called(c)
}

// called records that a call is made, and returns its place.
func (r *record) called(c checker.Call) int {
	if r == nil {
		return 0
	}
	at := len(r.recording.Calls)
	c.Request = fmt.Sprint("call-", at)
	c.Asked, c.Answered, c.Code = r.w.now, checker.Forever, leadership.OutcomeUnknown
	r.recording.Calls = append(r.recording.Calls, c)
	return at
}

// id returns the id of the request at that place.
func (r *record) id(at int) string {
	if r == nil {
		return ""
	}
	return r.recording.Calls[at].Request
}

// answered records the answer to a call. An unknown outcome is not an answer.
func (r *record) answered(at int, a reply) {
	if r == nil || errors.Is(a.err, leadership.OutcomeUnknown) {
		return
	}
	c := &r.recording.Calls[at]
	c.Answered, c.Code = r.w.now, ""
	if a.err == nil {
		c.Answer = a.lease
		if c.Verb == checker.Acquire {
			c.Key = a.key
		}
		return
	}
	errors.As(a.err, &c.Code)
	if c.Verb == checker.Acquire && c.Election != whole {
		c.Waited = r.wait
	}
	if refusal, ok := errors.AsType[*leadership.Error](a.err); ok {
		c.Answer, c.Because, c.Again = refusal.Lease, refusal.Reason, refusal.RetryAfter
	}
}

// believed records a belief that ends now, or has ended.
func (r *record) believed(a *agent) {
	if r == nil || r.skewed {
		return
	}
	end := r.w.now
	if a.belief.Left(a.now()) == 0 {
		end = min(end, a.clock.when(a.belief.Deadline()))
	}
	r.recording.Beliefs = append(r.recording.Beliefs, checker.Belief{Who: a.who(), Election: a.election, Token: a.token, From: a.since, Until: max(end, a.since)})
}

// unsettled records that faults were possible until now.
func (r *record) unsettled() {
	if r != nil {
		r.recording.Faults = append(r.recording.Faults, checker.Fault{Name: "what the seed has drawn", Until: r.w.now})
	}
}

// finish returns the recording, with the store's history.
func (r *record) finish(history []leadership.Event) checker.Recording {
	if r == nil {
		return checker.Recording{}
	}
	r.recording.History = history
	return r.recording
}
