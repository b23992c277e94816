package checker

import (
	"regent/leadership"
)

// Told checks that no answer describes a lease that never was: done, refused or read, at once or
// after a wait. A lease that is shown as held has all of its parts; its token, its leader and its
// revision belong together; it was acquired when its event says; and its instants lie within its
// term, and agree with each other. One that is shown as vacant has no parts of a lease. A lease
// that stands on another one does not last beyond that.
func Told(r Recording) Report {
	truth, report := truthOf(r.History)
	told := told{report: &report, truth: truth, terms: truth.allTerms()}
	for _, c := range r.Calls {
		if c.Answer != nil && c.Answered != Forever {
			told.check(c, *c.Answer)
		}
	}
	for _, x := range r.Readings {
		if x.Shown != nil {
			told.check(x, *x.Shown)
		}
	}
	return report
}

// told is the check of all answers.
type told struct {
	report *Report
	truth  truth
	terms  map[grantID]term
}

func (t told) check(answer any, l leadership.Lease) {
	t.report.Checked++
	event, ok := t.truth.event(l.Election, l.Revision)
	switch {
	case !ok && (l.Revision > 0 || l.Token > 0 || l.State == leadership.Held):
		t.report.add(Phantom, "%v describes a revision that was never committed: %+v", answer, l)
	case ok && l.Token != event.Token:
		t.report.add(Untrue, "%v describes token %d at revision %d, and it was %d", answer, l.Token, l.Revision, event.Token)
	case l.State != leadership.Held:
		if l.LeaderID != "" || l.ExpiresIn > 0 || !l.AcquiredAt.IsZero() || !l.LastHeartbeat.IsZero() || !l.LeaseExpiration.IsZero() {
			t.report.add(Untrue, "%v describes a vacant election with parts of a lease: %+v", answer, l)
		}
	default:
		t.checkHeld(answer, l)
	}
}

func (t told) checkHeld(answer any, l leadership.Lease) {
	id := grantID{l.Election, l.Token}
	term, ok := t.terms[id]
	switch {
	case !ok:
		t.report.add(Phantom, "%v describes a lease that was never granted: %+v", answer, l)
	case l.LeaderID != term.granted.LeaderID:
		t.report.add(Untrue, "%v describes a lease of %q, and it was granted to %q", answer, l.LeaderID, term.granted.LeaderID)
	case l.Revision < term.granted.Revision || term.over() && l.Revision >= term.ended.Revision:
		t.report.add(Untrue, "%v describes the lease of token %d at revision %d, which is not of its term", answer, l.Token, l.Revision)
	case l.LeaseDuration <= 0 || l.AcquiredAt.IsZero() || l.LastHeartbeat.IsZero() || l.LeaseExpiration.IsZero() || l.ReadAt.IsZero():
		t.report.add(Incomplete, "%v describes a lease without all of its parts: %+v", answer, l)
	case l.Parent.Token > 0 && l.Parent.Peer == "" && !t.granted(l.Parent):
		t.report.add(Phantom, "%v describes a lease that stands on one that was never granted: %+v", answer, l)
	default:
		t.checkInstants(answer, l, term)
	}
}

func (t told) granted(p leadership.Parent) bool {
	_, ok := t.terms[grantID{p.Election, p.Token}]
	return ok
}

func (t told) checkInstants(answer any, l leadership.Lease, of term) {
	end := l.LastHeartbeat.Add(l.LeaseDuration)
	if !l.EndsBy.IsZero() && l.EndsBy.Before(end) {
		end = l.EndsBy
	}
	switch {
	case !l.LeaseExpiration.Equal(end):
		t.report.add(Untrue, "%v describes a lease whose parts make an end at %v: %+v", answer, end, l)
	case l.ExpiresIn > max(l.LeaseExpiration.Sub(l.ReadAt), 0):
		t.report.add(Untrue, "%v describes a lease that lasts beyond its end: %+v", answer, l)
	case l.LastHeartbeat.Before(of.granted.At), of.over() && l.LastHeartbeat.After(of.ended.At):
		t.report.add(Untrue, "%v describes a heartbeat at %v, and the term lasted from %v to %v", answer, l.LastHeartbeat, of.granted.At, of.ended.At)
	case l.Parent.Token > 0 && l.LeaseExpiration.After(l.Parent.Until):
		t.report.add(Unlimited, "%v describes a lease that lasts beyond %v, when that ends on which it stands: %+v", answer, l.Parent.Until, l)
	case !l.AcquiredAt.Equal(of.granted.At):
		t.report.add(Untrue, "%v describes a lease as acquired at %v, and its event says %v", answer, l.AcquiredAt, of.granted.At)
	}
}
