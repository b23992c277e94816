package rule

import (
	"encoding/json"
	"errors"
	"fmt"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// fallen returns an error if a counter is lower than in the report before.
func fallen(c leadership.Counters, before leadership.Counters) error {
	was := before.All()
	for i, n := range c.All() {
		if n.Value < was[i].Value {
			return fmt.Errorf("%s has fallen from %d to %d; counters are cumulative for the term, so report the sum", n.Name, was[i].Value, n.Value)
		}
	}
	return nil
}

// trip is the reason why a policy ends a term: a sentence, and the numbers for the event.
type trip struct {
	why    string
	detail leadership.Detail
}

func (t trip) tripped() bool { return t.why != "" }

// judgeCounters returns why the counters trip; the zero trip if they do not.
func judgeCounters(p leadership.TermPolicy, c leadership.Counters) trip {
	limits := p.Budget.All()
	for i, n := range c.All() {
		if most := limits[i].Value; most > 0 && n.Value > most {
			return trip{
				fmt.Sprintf("%s is %d, and its budget is %d", n.Name, n.Value, most),
				leadership.Detail{Budget: new(most), Counter: n.Name, Value: n.Value},
			}
		}
	}
	if r := p.ErrorRate; r.Max > 0 && c.Calls >= r.Min && float64(c.Errors) > r.Max*float64(c.Calls) {
		return trip{
			fmt.Sprintf("%d of %d calls have failed, and at most %v may", c.Errors, c.Calls, r.Max),
			leadership.Detail{Calls: c.Calls, ErrorRate: json.Number(fmt.Sprint(r.Max)), Errors: c.Errors},
		}
	}
	return trip{}
}

// report applies the leader's report that came with a heartbeat. s.Now may be earlier than the
// commit, never later: see Expect.
func (c *Change) report(s Snapshot, text leadership.ReportText) error {
	r := &c.Record
	before, report, policy := r.Standing.Report.Report(), text.Report(), r.Policy.Term
	if err := fallen(report.Counters, before.Counters); err != nil {
		return leadership.Invalid("report", err)
	}
	t := judgeCounters(policy, report.Counters)
	if series := policy.Series; !t.tripped() && series.BudgetWithin > 0 {
		t = judgeSeries(series, r.Standing.Series.used(series, s.Now, report.Counters))
	}
	if t.tripped() && policy.OnTrip != leadership.TripNotify {
		*c = s.change() // no heartbeat
		c.Record.Standing.Report = text
		c.depose(s, t)
		return nil
	}
	if stuck := &r.Standing.Ends.Stuck; policy.StuckAfter > 0 && (report.Progress > before.Progress || stuck.IsZero()) {
		*stuck = form.Later(s.Now, policy.StuckAfter)
		c.limit(s.Record.LeaseEnd())
	}
	r.Standing.Report, r.Standing.ReportedAt = text, form.Later(s.Now, 0)
	c.passProbation(s.Now)
	c.notify(t)
	return nil
}

// notify announces, once in a term, that the leader has tripped and goes on.
func (c *Change) notify(t trip) {
	if standing := &c.Record.Standing; t.tripped() && !standing.Notified {
		standing.Notified = true
		c.announce(leadership.EventTripped, "")
		c.explain(t.why, t.detail)
	}
}

// depose ends the term now. The leader may not hear of it before the end that it was promised, so
// no lease is granted before that.
func (c *Change) depose(s Snapshot, t trip) {
	r := &c.Record
	promised := s.Record.LeaseEnd()
	r.Standing.endProbation(r.LeaderID, s.Now)
	if t.detail.WithinMS == 0 { // otherwise the terms together are at fault, not this leader
		r.bar(s.Now, t.why, &t.detail)
	}
	r.Standing.Deposed = deposed{Token: r.Token, Why: t.why}
	c.fail(s.Now)
	c.vacate(leadership.EventDeposed, s.Now, promised.Sub(s.Now)+r.Policy.LockDelay+s.Guard)
	c.explain(t.why, t.detail)
	c.park(s.Now)
	c.leave(s)
}

// deposed is the last term, if it ended by a trip.
type deposed struct {
	Token leadership.Token `json:"fencingToken,omitempty"`
	Why   string           `json:"why,omitempty"`
}

func (d deposed) Validate() error {
	if d.Why == "" || len(d.Why) > leadership.MaxReasonBytes {
		return errors.New("a term was deposed, and the reason is missing")
	}
	return d.Token.Validate()
}

// reportField encodes a report as a member of a standing.
type reportField leadership.ReportText

func (f *reportField) encode() json.RawMessage {
	if *f == "" {
		return nil
	}
	return json.RawMessage(*f)
}

func (f *reportField) decode(text json.RawMessage) error {
	report, err := leadership.ParseReport(text)
	*f = reportField(report)
	return err
}
