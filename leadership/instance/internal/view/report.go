package view

import (
	"time"

	"regent/leadership"
)

// Report is what a leader has said of its work. It is never changed.
type Report struct {
	Text  leadership.ReportText
	At    time.Time // by the store's clock
	Token leadership.Token
}

// ReportOf is the report of a lease; nil if it has none.
func ReportOf(l leadership.Lease) *Report {
	if l.Report == "" {
		return nil
	}
	return &Report{l.Report, l.ReportedAt, l.Token}
}

// After reports whether it was given after the other one; nil is before all.
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

// Report is the last that this instance has learnt of while the election is watched; nil for none.
func (e *Election) Report() *Report { return e.report }

// Reported returns the watched elections of which a new report was learnt since it was called last.
func (v *View) Reported() []*Election {
	all := v.reported
	v.reported = nil
	return all
}
