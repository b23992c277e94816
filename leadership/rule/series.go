package rule

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// failure is a term that has failed.
type failure struct {
	Token leadership.Token `json:"token"`
	At    time.Time        `json:"at"`
}

func (f failure) Validate() error { return errors.Join(f.Token.Validate(), form.Instants(f.At)) }

// spending is the use of the terms that ended within one step of SeriesPolicy.BudgetWithin.
type spending struct {
	Since time.Time           `json:"since"`
	Used  leadership.Counters `json:"used"`
}

func (p spending) Validate() error { return errors.Join(p.Used.Validate(), form.Instants(p.Since)) }

// maxSpendings is the number of steps in SeriesPolicy.BudgetWithin. One more is in progress.
const maxSpendings = 16

// series sums up the terms since the last approval.
type series struct {
	Failed string // the last failures, as a JSON array; "" if there is none
	Spent  string // the last spendings, as a JSON array; "" if there is none
	Parked string // why the election is parked; "" if it is not
}

// parked reports whether the last terms exceeded SeriesPolicy, so that no candidate is granted.
func (r *Record) parked() bool { return r.Standing.Series.Parked != "" }

// step returns the length of one spending.
func step(p leadership.SeriesPolicy) time.Duration { return p.BudgetWithin / maxSpendings }

// failed returns the failures that count at now.
func (s series) failed(p leadership.SeriesPolicy, now time.Time) []failure {
	return slices.DeleteFunc(form.List[failure](s.Failed), func(f failure) bool { return !now.Before(f.At.Add(p.Within)) })
}

// spent returns the spendings that count at now.
func (s series) spent(p leadership.SeriesPolicy, now time.Time) []spending {
	return slices.DeleteFunc(form.List[spending](s.Spent), func(x spending) bool { return !now.Before(x.Since.Add(step(p) + p.BudgetWithin)) })
}

// used returns the sum of the spendings and of the present term's counters.
func (s series) used(p leadership.SeriesPolicy, now time.Time, term leadership.Counters) leadership.Counters {
	for _, x := range s.spent(p, now) {
		term = term.Plus(x.Used)
	}
	return term
}

// fail counts the term of c.Record as failed.
func (c *Change) fail(now time.Time) {
	r := &c.Record
	if p, s := r.Policy.Term.Series, &r.Standing.Series; p.Failures > 0 {
		all := append(s.failed(p, now), failure{r.Token, form.Later(now, 0)})
		s.Failed = form.WriteList(all[max(len(all)-leadership.MaxFailures, 0):])
	}
}

// spend adds the counters of the term of r, which ends now, to the spendings.
func (r *Record) spend(now time.Time) {
	p, s := r.Policy.Term.Series, &r.Standing.Series
	if p.BudgetWithin == 0 {
		return
	}
	used := r.Standing.Report.Report().Counters
	if used == (leadership.Counters{}) {
		return
	}
	all := s.spent(p, now)
	if n := len(all); n > 0 && now.Before(all[n-1].Since.Add(step(p))) {
		all[n-1].Used = all[n-1].Used.Plus(used)
	} else {
		all = append(all, spending{form.Later(now, 0), used})
	}
	s.Spent = form.WriteList(all[max(len(all)-maxSpendings-1, 0):])
}

// park parks the election if the terms until now, of which the last has just ended, exceed the
// policy: no candidate is granted without an approval.
func (c *Change) park(now time.Time) {
	r := &c.Record
	p, s := r.Policy.Term.Series, &r.Standing.Series
	if p == (leadership.SeriesPolicy{}) {
		return
	}
	t := judgeSeries(p, s.used(p, now, leadership.Counters{}))
	if failed := s.failed(p, now); !t.tripped() && p.Failures > 0 && len(failed) >= p.Failures {
		t = trip{
			fmt.Sprintf("%d terms have failed within %s, the last with fencing token %d", len(failed), form.Spoken(p.Within), failed[len(failed)-1].Token),
			leadership.Detail{Failures: len(failed), WithinMS: p.Within.Milliseconds()},
		}
	}
	if !t.tripped() {
		return
	}
	s.Parked = t.why
	r.Standing.Approval = approval{Orders: r.Standing.Approval.Orders, Awaited: true} // earlier approvals were of the term
	c.announce(leadership.EventParked, "")
	c.explain(t.why, t.detail)
}

// judgeSeries returns why the counters of all terms together trip; the zero trip if they do not.
func judgeSeries(p leadership.SeriesPolicy, used leadership.Counters) trip {
	if p.BudgetWithin == 0 {
		return trip{}
	}
	t := judgeCounters(leadership.TermPolicy{Budget: p.Budget}, used)
	if t.tripped() {
		t.why += " for all terms within " + form.Spoken(p.BudgetWithin)
		t.detail.WithinMS = p.BudgetWithin.Milliseconds()
	}
	return t
}
