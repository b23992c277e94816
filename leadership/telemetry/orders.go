package telemetry

import (
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// orders tells why an election waits for its operators: a pause, a halt, or an approval that is
// due.
type orders struct {
	read leadership.Revision // of the record that the orders were last read from

	pause    leadership.OverrideID // the last pause
	pausedAt time.Time             // since when there has been a pause without a gap
	until    time.Time             // the end of the last pause, even if it is past

	haltedAt    time.Time // since when a halt has covered the election
	haltedUntil time.Time // the end of the last halt, even if it is past

	asked    time.Time // since when the election has waited for an approval; zero if it does not
	awaited  bool      // no lease is granted without the approval
	approved time.Time // when the last wait with awaited was over
}

// paused reports whether no candidate is granted, by an operator's order.
func (o *orders) paused(now time.Time) bool { return now.Before(latest(o.until, o.haltedUntil)) }

// since returns since when the election has been paused.
func (o *orders) since(now time.Time) time.Time {
	if now.Before(o.haltedUntil) && (!now.Before(o.until) || o.haltedAt.Before(o.pausedAt)) {
		return o.haltedAt
	}
	return o.pausedAt
}

// barred reports whether no candidate is granted until an operator, or the end of a pause or a
// halt, allows it.
func (o *orders) barred(now time.Time) bool { return o.awaited || o.paused(now) }

// freed returns until when the election was last barred; zero if it never was. Call it only if it
// is not barred now.
func (o *orders) freed() time.Time { return latest(o.until, o.haltedUntil, o.approved) }

func latest(all ...time.Time) time.Time { return slices.MaxFunc(all, time.Time.Compare) }

// learn reads the orders from a record, once for each revision.
func (o *orders) learn(snap rule.Snapshot) {
	r := snap.Record
	if r.Revision == o.read {
		return
	}
	o.read = r.Revision
	var pause leadership.Override
	for _, one := range r.Standing.Overrides.List() {
		if one.Kind == leadership.OverridePause && snap.Now.Before(one.Until) {
			pause = one
		}
	}
	if pause.ID != "" {
		o.stop(pause.ID, pause.Since, pause.Until)
	} else {
		o.resume(snap.Now)
	}
	switch approval := r.Standing.Approval; {
	case approval.Awaited && (r.Policy.Term.Approval.Every > 0 || r.Standing.Series.Parked != ""):
		o.ask(r.EndedAt)
		o.awaited = true
	case approval.Asked:
		o.ask(snap.Now)
	default:
		o.approve(snap.Now)
	}
}

// hear updates the orders by the event.
func (o *orders) hear(e leadership.Event) {
	switch e.Type {
	case leadership.EventPaused:
		d := e.ReadDetail()
		o.stop(d.Override, e.At, d.Until)
	case leadership.EventResumed:
		o.resume(e.At)
	case leadership.EventLifted:
		if e.ReadDetail().Override == o.pause {
			o.resume(e.At)
		}
	case leadership.EventApprovalRequested:
		o.ask(e.At)
	case leadership.EventParked:
		o.ask(e.At)
		o.awaited = true
	case leadership.EventApproved:
		if d := e.ReadDetail(); d.Have >= d.Need {
			o.approve(e.At)
		}
	case leadership.EventAcquired:
		o.approve(e.At)
	}
	switch ended := e.PreviousLeaderID != "" && e.LeaderID == ""; {
	case ended && e.ReadDetail().EndsBecause == leadership.EndsApproval:
		o.ask(e.At)
		o.awaited = true
	case ended: // the leader's request for an approval ends with its term
		o.approve(e.At)
	}
}

func (o *orders) stop(id leadership.OverrideID, since, until time.Time) {
	if !since.Before(o.until) {
		o.pausedAt = since
	}
	o.pause, o.until = id, until
}

// resume notes that there is no pause.
func (o *orders) resume(at time.Time) {
	if at.Before(o.until) {
		o.until = at
	}
}

// halt notes the halt that covers the election as of the instant; of several, the one that ends
// last.
func (o *orders) halt(e leadership.Election, all []leadership.Override, at time.Time) {
	var last leadership.Override
	for _, one := range all {
		if one.Elections.Covers(e) && one.Until.After(last.Until) {
			last = one
		}
	}
	switch {
	case at.Before(last.Until):
		if !last.Since.Before(o.haltedUntil) {
			o.haltedAt = last.Since
		}
		o.haltedUntil = last.Until
	case at.Before(o.haltedUntil):
		o.haltedUntil = at
	}
}

// ask notes that the election waits for an approval.
func (o *orders) ask(since time.Time) {
	if o.asked.IsZero() {
		o.asked = since
	}
}

// approve notes that the election does not wait for an approval.
func (o *orders) approve(at time.Time) {
	if o.awaited {
		o.approved = at
	}
	o.asked, o.awaited = time.Time{}, false
}
