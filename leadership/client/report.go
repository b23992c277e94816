package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"regent/leadership"
)

// Report is a leader's account of its work. Counters are cumulative for the term, and never fall. A
// zero field leaves the lease's report as it is.
type Report struct {
	Progress   int64 // any number that rises with useful work
	Tasks      int64
	TokensUsed int64 // of a language model
	Calls      int64
	Errors     int64 // of the calls

	ETA    time.Duration
	Health string // one line for people, as "ok"

	// Values are anything that encoding/json can write; nil removes a key.
	Capabilities, Dependencies, Custom map[string]any
}

// ParseReport reads a report from a JSON object in the API's form: see leadership.ParseReport.
func ParseReport(text []byte) (Report, error) {
	canonical, err := leadership.ParseReport(text)
	if err != nil {
		return Report{}, fmt.Errorf("client: %w", err)
	}
	in := canonical.Report()
	r := Report{
		Progress: in.Progress, Tasks: in.Tasks, TokensUsed: in.TokensUsed, Calls: in.Calls, Errors: in.Errors, Health: in.Health,
		Capabilities: loose(in.Capabilities), Dependencies: loose(in.Dependencies), Custom: loose(in.Custom),
	}
	if in.ETA != "" {
		r.ETA, _ = time.ParseDuration(in.ETA) // it is valid
	}
	return r, nil
}

func loose(in map[string]json.RawMessage) map[string]any {
	out := make(map[string]any, len(in))
	for k, v := range in {
		out[k] = v
	}
	return out
}

// Report merges r into the lease's report, which renewals send to the server: the larger value of
// each counter counts, other fields and the keys of maps are replaced. It does not block. A changed
// report goes with one of the next renewals: at most with every third, but with every one while the
// term is about to end for want of progress.
//
// It returns InvalidArgument, and leaves the report as it was, if the report is invalid or has more
// than leadership.MaxReportBytes in all. A server that refuses a report does not end the lease: the
// lease is renewed without it, the log says why, and no report is sent for ten minutes.
func (l *Lease) Report(r Report) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	merged, err := r.onto(l.reports.all)
	if err != nil {
		return invalid("report", "%v", err)
	}
	text, err := merged.Text()
	if err != nil {
		return invalid("report", "%v", err)
	}
	l.reports.all, l.reports.text = merged, text
	return nil
}

// onto returns the report before, with r merged into it.
func (r Report) onto(before leadership.Report) (leadership.Report, error) {
	all := before
	for _, c := range []struct {
		into  *int64
		value int64
	}{
		{&all.Progress, r.Progress}, {&all.Tasks, r.Tasks}, {&all.TokensUsed, r.TokensUsed}, {&all.Calls, r.Calls}, {&all.Errors, r.Errors},
	} {
		if c.value < 0 {
			return before, errors.New("a counter is 0 or more")
		}
		*c.into = max(*c.into, c.value)
	}
	if r.ETA != 0 {
		all.ETA = r.ETA.String()
	}
	if r.Health != "" {
		all.Health = r.Health
	}
	for _, m := range []struct {
		name string
		into *map[string]json.RawMessage
		more map[string]any
	}{
		{"capabilities", &all.Capabilities, r.Capabilities}, {"dependencies", &all.Dependencies, r.Dependencies}, {"custom", &all.Custom, r.Custom},
	} {
		merged, err := merge(*m.into, m.more)
		if err != nil {
			return before, fmt.Errorf("%s: %w", m.name, err)
		}
		*m.into = merged
	}
	return all, nil
}

func merge(before map[string]json.RawMessage, more map[string]any) (map[string]json.RawMessage, error) {
	if len(more) == 0 {
		return before, nil
	}
	all := maps.Clone(before)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	for k, v := range more {
		if v == nil {
			delete(all, k)
			continue
		}
		text, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", k, err)
		}
		all[k] = text
	}
	return all, nil
}

// reportEvery means that every third renewal may carry a report, which costs the store more.
const reportEvery = 3

// reporting is the report of a lease, and what the server was sent of it.
type reporting struct {
	all     leadership.Report
	text    leadership.ReportText // all, as it is sent
	told    leadership.ReportText // the last report that the server has taken or refused
	sending leadership.ReportText // the report in the present renewal; empty if there is none
	plain   int                   // how many renewals go without a report before the next with one
	failed  bool                  // the last renewal had a report, and was not answered
	never   time.Duration         // until then no reports are sent unless they are urgent
}

// begin starts from the report that the server has of a resumed lease.
func (r *reporting) begin(known leadership.ReportText) {
	r.all, r.text, r.told = known.Report(), known, known
}

// next returns the report for the renewal that is about to be sent; empty if it goes without.
func (r *reporting) next(now time.Duration, urgent bool) []byte {
	r.sending = ""
	due := r.plain == 0 && now >= r.never
	// after a failure the lease comes first
	if r.text == r.told || r.failed || !due && !urgent {
		return nil
	}
	r.sending = r.text
	return []byte(r.text)
}

// answered notes that the renewal was answered with the lease.
func (r *reporting) answered() {
	r.failed = false
	if r.sending != "" {
		r.told, r.plain = r.sending, reportEvery-1
	} else if r.plain > 0 {
		r.plain--
	}
}

// unanswered notes that the renewal has failed: the next one goes without a report.
func (r *reporting) unanswered() { r.failed = r.sending != "" }

// refused notes that the server refuses the report.
func (r *reporting) refused(now time.Duration) {
	r.told, r.never, r.failed = r.sending, now+aloneFor, false
}

// refusesReport reports whether the answer to a renewal that carried a report refuses that report.
// An older server says that it does not know the field.
func refusesReport(err error) bool {
	e, ok := errors.AsType[*leadership.Error](err)
	if !ok || e.Code != leadership.InvalidArgument {
		return false
	}
	name, _, _ := strings.Cut(e.Field, "/")
	return name != "ticket"
}
