package view

import (
	"time"

	"regent/leadership"
)

// Source is the kind of call that the store's answer about an election came from.
type Source int

const (
	// Read is a read, or a refusal: nothing was changed.
	Read Source = iota
	// Committed is a call of this instance that changed the election or renewed its lease. This
	// instance looks after the end of a lease that it has granted or renewed.
	Committed
)

// Lease is the store's answer about an election. It is never changed.
type Lease struct {
	leadership.Lease
	Asked  time.Duration // before the store was asked; Age counts from it
	Learnt time.Duration // when the answer arrived; for waiting callers the remaining time counts from it
	// Absent is the store's error if there is no such election: it was never seen, or is deleted.
	Absent error
}

// Aged returns the lease with its remaining times reduced by that time.
func Aged(l leadership.Lease, by time.Duration) leadership.Lease {
	l.ExpiresIn = max(l.ExpiresIn-by, 0)
	l.RenewIn = max(l.RenewIn-by, 0)
	l.LockedFor = max(l.LockedFor-by, 0)
	l.EndsIn = max(l.EndsIn-by, 0)
	l.Succession.Left = max(l.Succession.Left-by, 0)
	if l.Report != "" {
		l.ReportAge += by
	}
	return l
}

// Learn handles the store's answer about an election. The remaining time of the lease counts from
// now, for waiting candidates and for its end. It reports whether the answer is news to a line.
func (v *View) Learn(l *leadership.Lease, from Source, asked, now time.Duration) (wake bool) {
	e, ok := v.elections[l.Election]
	if !ok {
		if from != Committed || l.State != leadership.Held {
			return false
		}
		e = v.election(l.Election)
	}
	e.learnEnd(l, from, now)
	wake = e.learn(l, asked, now, v.opens(l, now), false)
	v.settle(e)
	return wake
}

// Refused handles the refusal of an attempt to lead. Its RetryAfter is more precise than the time
// derived from the lease, unless an order or the like is the cause: then other candidates may be
// granted before.
func (v *View) Refused(refusal *leadership.Error, asked, now time.Duration) {
	l := refusal.Lease
	e, ok := v.elections[l.Election]
	if !ok {
		return
	}
	exact := refusal.Cause == nil // otherwise RetryAfter is of an order or a ballot, or of a leader's shortest term
	if l.State == leadership.Held && exact {
		v.guard = max(refusal.RetryAfter-l.ExpiresIn, 0)
	}
	open := v.opens(l, now)
	if refusal.RetryAfter > 0 && exact {
		open = now + refusal.RetryAfter
		if refusal.Reason != leadership.ReasonLockDelay { // before another leads, the delay passes as well
			open += l.Config.LockDelay
		}
	}
	e.learnEnd(l, Read, now)
	e.learn(l, asked, now, open, exact)
	v.settle(e)
}

// opens returns when asking for the lease may help candidates that do not have it: for a deleted
// election at once, so that they are told.
func (v *View) opens(l *leadership.Lease, now time.Duration) time.Duration {
	switch {
	case l.Deleted:
		return now
	case l.State == leadership.Held:
		return now + l.ExpiresIn + v.guard + l.Config.LockDelay
	}
	return now + l.LockedFor
}

// learn keeps the store's answer if it counts. exact says that open also comes from the store.
func (e *Election) learn(l *leadership.Lease, asked, now, open time.Duration, exact bool) (wake bool) {
	version := e.version
	switch order, later := e.compare(l), asked > e.changed; {
	case order < 0 && !later:
		return false
	case order == 0:
		// Of two answers that show the same end, the one that took less time is nearer to the
		// truth.
		if open < e.open || exact && later {
			e.open = open
			e.version++
		}
		if then := e.lease; l.ReadAt.After(then.ReadAt) || l.ReadAt.Equal(then.ReadAt) && (l.ReportedAt.After(then.ReportedAt) || l.DrawSecret != "" && then.DrawSecret == "") {
			e.keep(l, asked, now)
		}
	default:
		e.lease, e.event, e.newest, e.changed, e.open = nil, nil, l.Revision, now, open
		e.ordered = min(e.ordered, e.newest)
		e.succession.learnt(l, now)
		if h := e.history; h != nil && l.Revision > h.heard && l.Revision > h.head() {
			h.expect(l.Revision, now)
			h.due += retry // its event mostly comes by itself before that
		}
		if e.version++; e.wanted() || e.reads > 0 {
			e.keep(l, asked, now)
		}
		if l.Deleted {
			delete(e.view.kept, e)
		}
	}
	e.assigned.learnt(l, now)
	e.learnReport(l)
	return e.version != version
}

// keep remembers the store's answer.
func (e *Election) keep(l *leadership.Lease, asked, now time.Duration) {
	e.lease = &Lease{Lease: *l, Asked: asked, Learnt: now}
	e.lease.Ticket = "" // only for the caller, as are the overrides, except for the halts
	if !e.isHalts() {
		e.lease.Overrides = ""
	}
}

// compare returns 1 if the store's answer is newer than the known state, -1 if it is older, and 0
// if it shows the same.
func (e *Election) compare(l *leadership.Lease) int {
	switch {
	case l.Revision < e.newest:
		return -1
	case l.Revision > e.newest || e.lease == nil || e.event != nil:
		return 1
	case l.State == e.lease.State:
		return l.LeaseExpiration.Compare(e.lease.LeaseExpiration)
	case l.State == leadership.Held:
		return -1
	}
	return 1
}

// soon is how long an instance may take to find out about a lease of which it knows only that it
// was granted: no lease is over sooner.
const soon = leadership.MinLeaseDuration

// Heard handles an event. It reports whether it is news to a line or a watch.
func (v *View) Heard(event leadership.Event, now time.Duration) (news bool) {
	e, ok := v.elections[event.Election]
	if !ok {
		return false
	}
	e.hearEnd(event, now)
	e.assigned.heard(event, now)
	news = e.hearOrder(event)
	if event.Revision > e.newest {
		e.hear(event, now)
		news = true
	}
	if e.history != nil {
		news = e.history.hear(event, now) || news
	}
	v.settle(e)
	return news
}

// hear handles an event that is newer than the known state. Earlier events may have been missed, so
// the leader that it names counts more than its type.
func (e *Election) hear(event leadership.Event, now time.Duration) {
	leader, token, known := e.leads()
	same := known && event.LeaderID == leader && event.Token == token
	epoch := known && event.Type == leadership.EventEpoch && event.LeaderID == leader
	switch {
	case event.Type == leadership.EventDeleted, event.Type == leadership.EventUnlocked:
		e.open = now
	case same:
	case epoch: // the lease has begun anew, so it ends no sooner than the known end
		e.open = max(e.open, now+soon)
	case event.LeaderID != "", handedOver(event): // the successor leads by the next event
		e.open = now + soon
	case event.Type == leadership.EventDeposed && e.lease != nil: // the deposed leader may believe until its end
		e.open = max(e.open, now)
	case event.Type == leadership.EventExpired && e.lease != nil:
		e.open = now + e.lease.Config.LockDelay
	default:
		e.open = now
	}
	e.hearSuccession(event, now)
	if !same && !epoch {
		e.terms++
	}
	e.event, e.newest, e.changed = &event, event.Revision, now
	e.version++
	delete(e.view.kept, e)
}

// hearOrder counts an event, even a late one, after which a barred candidate may get another
// answer.
func (e *Election) hearOrder(event leadership.Event) bool {
	if event.Revision <= e.ordered || !mayUnbar(event.Type) {
		return false
	}
	e.ordered = event.Revision
	e.orders++
	e.version++
	return true
}

// mayUnbar reports whether a barred candidate may get another answer from the store after such an
// event. It reports true for unknown types.
func mayUnbar(t leadership.EventType) bool {
	switch t {
	case leadership.EventAcquired, leadership.EventUpdated, leadership.EventReleased, leadership.EventExpired,
		leadership.EventUnlocked, leadership.EventApprovalRequested, leadership.EventJudged,
		leadership.EventTripped, leadership.EventDeposed, leadership.EventHandingOver, leadership.EventGoesOn,
		leadership.EventReady, leadership.EventServing, leadership.EventYielded, leadership.EventDelegated:
		return false
	}
	return true
}

// forget drops an invented event.
func (e *Election) forget(now time.Duration) {
	if e.event == nil || e.event.Revision <= e.history.head() {
		return
	}
	e.event, e.newest = nil, e.history.head()
	if e.lease != nil && e.lease.Revision < e.newest { // the end of the history is known, but not its events
		e.lease = nil
		delete(e.view.kept, e)
	}
	e.succession, e.assigned = succession{}, assigned{as: e.newest}
	if e.lease != nil {
		e.newest = e.lease.Revision
		e.succession.learnt(&e.lease.Lease, e.lease.Learnt)
	}
	e.ordered = min(e.ordered, e.newest)
	e.changed = now
	e.version++
}

// leads returns the known leader, "" if the election is vacant; known reports whether anything is
// known.
func (e *Election) leads() (leader leadership.CandidateID, token leadership.Token, known bool) {
	switch {
	case e.event != nil:
		return e.event.LeaderID, e.event.Token, true
	case e.lease != nil && e.lease.State == leadership.Held:
		return e.lease.LeaderID, e.lease.Token, true
	case e.lease != nil:
		return "", e.lease.Token, true
	}
	return "", 0, false
}

// Version returns a number that changes whenever a change concerns a line.
func (e *Election) Version() int { return e.version }

// Terms returns a number that changes whenever an event names another leader, or none.
func (e *Election) Terms() int { return e.terms }

// Orders returns a number that changes whenever an event may have unbarred a candidate.
func (e *Election) Orders() int { return e.orders }

// Open returns the earliest time at which asking for the lease may help, as far as is known, unless
// the leader renews or releases before.
func (e *Election) Open() time.Duration { return e.open }

// Leader returns the known leader; "" if the election is vacant.
func (e *Election) Leader() leadership.CandidateID {
	leader, _, _ := e.leads()
	return leader
}

// Term returns the known leader and its token; both are zero if nothing is known, and the leader is
// "" if the election is vacant.
func (e *Election) Term() (leadership.CandidateID, leadership.Token) {
	leader, token, _ := e.leads()
	return leader, token
}

// Leads reports whether the candidate is known to lead: it has not yielded, and its lease cannot be
// over.
func (e *Election) Leads(c leadership.CandidateID, now time.Duration) bool {
	return e.Leader() == c && now < e.open && !e.succession.Yielded
}

// Event returns the newest heard event, or nil if the store was asked since.
func (e *Election) Event() *leadership.Event { return e.event }

// Last returns the store's last answer, whatever was heard since; nil if there is none.
func (e *Election) Last() *Lease { return e.lease }

// Lease returns the store's last answer, or nil if an event says that the lease has changed since.
func (e *Election) Lease() *Lease {
	if e.lease == nil || e.event == nil {
		return e.lease
	}
	held := e.lease.State == leadership.Held && e.event.LeaderID == e.lease.LeaderID
	vacant := e.lease.State == leadership.Vacant && e.event.LeaderID == ""
	if e.event.Token == e.lease.Token && (held || vacant) {
		return e.lease
	}
	return nil
}
