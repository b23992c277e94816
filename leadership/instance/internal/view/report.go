package view

import (
	"time"

	"regent/leadership"
)

// Report is a leader's report on its work. It is never changed.
type Report struct {
	Text  leadership.ReportText
	At    time.Time // by the store's clock
	Token leadership.Token
}

// ReportOf returns the report of a lease; nil if it has none.
func ReportOf(l leadership.Lease) *Report {
	if l.Report == "" {
		return nil
	}
	return &Report{l.Report, l.ReportedAt, l.Token}
}

// After reports whether r was made after the other report; nil is before all.
func (r *Report) After(other *Report) bool {
	if r == nil || other == nil {
		return r != nil
	}
	return r.Token > other.Token || r.Token == other.Token && r.At.After(other.At)
}

// learnReport notes the report of a lease, for watchers.
func (e *Election) learnReport(l *leadership.Lease) {
	if e.watchers == 0 || l.Report == "" {
		return
	}
	if r := ReportOf(*l); r.After(e.report) {
		e.report = r
		e.view.reported = append(e.view.reported, e)
	}
}

// Report returns the last report that this instance has learnt of while the election is watched;
// nil for none.
func (e *Election) Report() *Report { return e.report }

// Reported returns the watched elections of which a new report was learnt since its last call.
func (v *View) Reported() []*Election {
	all := v.reported
	v.reported = nil
	return all
}
