package leadership

import (
	"fmt"
	"time"

	"regent/leadership/internal/form"
)

// SeriesPolicy limits the cost of an election over many terms, so that a task that no agent can do
// does not use up the budget of each one that tries. An election that exceeds it is parked: no
// candidate is granted until operators approve, as after a term that ended for want of an approval.
// The approval starts the count anew. The zero SeriesPolicy is no limit.
type SeriesPolicy struct {
	// Failures is how many failed terms within Within park the election: 1 to MaxFailures; 0: no
	// limit. A term has failed if its leader says so with the release, if it ended by a trip, or if
	// the lease ran out because the leader did not renew it.
	Failures int
	Within   time.Duration // 1 s to 30 days
	// Budget is how much of each counter the terms within BudgetWithin may use together. A term
	// that has ended counts at its end, in steps of a sixteenth of BudgetWithin; the present term
	// counts with what it has reported so far.
	Budget       Counters
	BudgetWithin time.Duration // 1 s to 30 days
}

// MaxFailures is the most that SeriesPolicy.Failures can be.
const MaxFailures = 16

func (p SeriesPolicy) validate() (field string, err error) {
	if field, err := validateBounds(
		bounded{"policy.series.within", p.Within, OrderBounds},
		bounded{"policy.series.budgetWithin", p.BudgetWithin, OrderBounds},
	); err != nil {
		return field, err
	}
	if p.Failures < 0 || p.Failures > MaxFailures {
		return "policy.series.failures", fmt.Errorf("policy.series.failures is from 1 to %d, not %d; leave it out if no number of failures shall park the election", MaxFailures, p.Failures)
	}
	if (p.Failures > 0) != (p.Within > 0) {
		return "policy.series.within", fmt.Errorf("policy.series.failures and policy.series.within belong together: say how many terms may fail, and within which time")
	}
	if err := p.Budget.Validate(); err != nil {
		return "policy.series.budget", fmt.Errorf("policy.series.budget: %w", err)
	}
	if (p.Budget != Counters{}) != (p.BudgetWithin > 0) {
		return "policy.series.budgetWithin", fmt.Errorf("policy.series.budget and policy.series.budgetWithin belong together: say how much may be used, and within which time")
	}
	return "", nil
}

// Outcome is how a leader says that its work has ended.
type Outcome string

const (
	OutcomeDone    Outcome = "done"    // the work is done
	OutcomeFailed  Outcome = "failed"  // the work failed: the term counts for SeriesPolicy.Failures
	OutcomeStopped Outcome = "stopped" // the work was cut short from outside
)

// Validate returns an error unless o is empty or one of the outcomes.
func (o Outcome) Validate() error {
	switch o {
	case "", OutcomeDone, OutcomeFailed, OutcomeStopped:
		return nil
	}
	return fmt.Errorf("outcome is %q, %q or %q, or left out, not %s", OutcomeDone, OutcomeFailed, OutcomeStopped, form.Shown(string(o)))
}
