package checker

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"regent/leadership"
)

// Limits checks what limits a term, by what callers were told of it:
//
//   - no lease is told to last beyond its EndsBy;
//   - no promise is shortened: of two answers about one token, the later one shows no earlier end
//     of the lease, whatever operators have ordered between them. A leader that has yielded has
//     given it up;
//   - no term goes beyond the maximum of its policy, nor beyond its approval;
//   - a leader without progress is out: its lease never lasts for longer than the policy allows
//     after the grant, or after the first answer with the progress that it has;
//   - the counters of the leader's reports never fall within a term.
//
// The limits are those of the policy at the grant; a term in which the configuration changes, or
// whose policy no call and no answer shows, is only checked for the first two and the last. Guard
// is by how much the clocks of the store's servers may differ.
func Limits(r Recording, guard time.Duration) Report {
	truth, report := truthOf(r.History)
	x := limits{report: &report, guard: guard + time.Microsecond, spans: spansOf(truth, r.Calls), reign: truth.reign(), reached: make(map[work]time.Time)}
	views := make(map[grantID][]Call)
	for _, c := range r.Calls {
		if !c.shows() || c.Answer.State != leadership.Held {
			continue
		}
		report.Checked++
		id := x.reign.of(grantID{c.Election, c.Answer.Token})
		views[id] = append(views[id], c)
		if a := c.Answer; a.Report != "" {
			w := work{id, a.Report.Report().Progress}
			if at, known := x.reached[w]; !known || a.ReportedAt.Before(at) {
				x.reached[w] = a.ReportedAt
			}
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(views), grantID.compare) {
		x.checkForward(slices.DeleteFunc(slices.Clone(views[id]), func(c Call) bool { return c.Answer.Succession.Yielded }))
		for _, c := range views[id] {
			x.checkEnd(id, c)
		}
	}
	return report
}

// limits is the check of all terms.
type limits struct {
	report  *Report
	guard   time.Duration
	spans   map[grantID]reignSpan
	reign   reign
	reached map[work]time.Time // when so much progress was first reported, as far as it is known
}

type work struct {
	id       grantID
	progress int64
}

// reignSpan is what limits the terms of one leader that never stopped: from the grant on.
type reignSpan struct {
	granted leadership.Event
	policy  leadership.TermPolicy // zero if it is not known, or has changed
	// approved has the events of approvals that were enough, with the end that each allows; zero if
	// that is not known.
	approved []approvedUntil
}

type approvedUntil struct {
	revision leadership.Revision
	end      time.Time
}

func spansOf(t truth, calls []Call) map[grantID]reignSpan {
	spans, configs, last := make(map[grantID]reignSpan), configsOf(t, calls), t.reign()
	asked := make(map[string]Call)
	for _, c := range calls {
		if c.Verb == Order && c.Request != "" {
			asked[c.Request] = c
		}
	}
	for e, events := range t {
		var policy leadership.TermPolicy
		var id grantID
		for _, event := range events {
			span := spans[id]
			switch {
			case event.Type == leadership.EventAcquired:
				id = last.of(grantID{e, event.Token})
				span = reignSpan{granted: event, policy: policy}
			case configures(event):
				policy = configs[event.ID()].Term
				span.policy = leadership.TermPolicy{}
			case event.Type == leadership.EventApproved:
				until := approvedUntil{revision: event.Revision}
				if c, ok := asked[event.RequestID]; ok {
					until.end = event.At.Add(cmp.Or(c.Order.For, policy.Approval.Every))
				}
				span.approved = append(span.approved, until)
			}
			if id.token > 0 {
				spans[id] = span
			}
			if ends(event) {
				id = grantID{}
			}
		}
	}
	return spans
}

// checkForward compares each answer with those that were given before it was asked for.
func (x limits) checkForward(asked []Call) {
	answered := slices.Clone(asked)
	slices.SortStableFunc(asked, func(a, b Call) int { return cmp.Compare(a.Asked, b.Asked) })
	slices.SortStableFunc(answered, func(a, b Call) int { return cmp.Compare(a.Answered, b.Answered) })
	var end time.Time
	var most leadership.Counters
	for _, c := range asked {
		for len(answered) > 0 && answered[0].Answered < c.Asked {
			a := answered[0].Answer
			end, most = later(end, a.LeaseExpiration), highest(most, a.Report.Report().Counters)
			answered = answered[1:]
		}
		if c.Answer.LeaseExpiration.Before(end) {
			x.report.add(Shortened, "%v: its lease ends at %s, and a caller was told before that it lasts until %s", c, stamp(c.Answer.LeaseExpiration), stamp(end))
		}
		if now := c.Answer.Report.Report().Counters; highest(most, now) != now {
			x.report.add(Fallen, "%v: it shows %+v, and a caller was shown %+v before", c, now, most)
		}
	}
}

func highest(a, b leadership.Counters) leadership.Counters {
	return leadership.Counters{
		Progress: max(a.Progress, b.Progress), Tasks: max(a.Tasks, b.Tasks), TokensUsed: max(a.TokensUsed, b.TokensUsed),
		Calls: max(a.Calls, b.Calls), Errors: max(a.Errors, b.Errors),
	}
}

// checkEnd checks the end of the lease that an answer shows.
func (x limits) checkEnd(id grantID, c Call) {
	a, span := c.Answer, x.spans[id]
	p, from := span.policy, span.granted.At.Add(x.guard)
	if !a.EndsBy.IsZero() && a.LeaseExpiration.After(a.EndsBy) {
		x.report.add(Unlimited, "%v: its lease ends at %s, and may not last beyond %s", c, stamp(a.LeaseExpiration), stamp(a.EndsBy))
	}
	if a.Parent.Token > 0 && a.LeaseExpiration.After(a.Parent.Until) {
		x.report.add(Unlimited, "%v: its lease ends at %s, and it stands on one that ends at %s", c, stamp(a.LeaseExpiration), stamp(a.Parent.Until))
	}
	if p.MaxTerm > 0 && a.LeaseExpiration.After(from.Add(p.MaxTerm)) {
		x.report.add(Unlimited, "%v: its lease ends at %s, and its term began at %s and has %v", c, stamp(a.LeaseExpiration), stamp(span.granted.At), p.MaxTerm)
	}
	if end, known := span.approvedUntil(a.Revision); known && p.Approval.Every > 0 && a.LeaseExpiration.After(end.Add(x.guard)) {
		x.report.add(Unlimited, "%v: its lease ends at %s, and it was approved until %s", c, stamp(a.LeaseExpiration), stamp(end))
	}
	if p.StuckAfter > 0 {
		end := from.Add(p.StuckAfter)
		if a.Report != "" {
			end = later(end, x.reached[work{id, a.Report.Report().Progress}].Add(p.StuckAfter+x.guard))
		}
		if a.LeaseExpiration.After(end) {
			x.report.add(Unlimited, "%v: its lease ends at %s, and without progress it may not last beyond %s", c, stamp(a.LeaseExpiration), stamp(end))
		}
	}
}

// approvedUntil is the end that the grant and the approvals up to a revision allow.
func (s reignSpan) approvedUntil(r leadership.Revision) (end time.Time, known bool) {
	end = s.granted.At.Add(s.policy.Approval.Every)
	for _, a := range s.approved {
		if a.revision > r {
			break
		}
		if a.end.IsZero() {
			return end, false
		}
		end = later(end, a.end)
	}
	return end, true
}
