package checker

import (
	"fmt"
	"strings"
)

// Kind is the name of a way in which a property may be violated.
type Kind string

// The violations of EV.
const (
	Broken     Kind = "broken history" // the truth itself has a gap
	Lost       Kind = "lost"           // a change was not announced
	Phantom    Kind = "phantom"        // what was announced, or read, was never committed
	Misordered Kind = "out of order"   // a change was announced for the first time after a later one of its election
	Altered    Kind = "differs from the truth"
)

// The violations of BS, beside Phantom.
const (
	Stale     Kind = "stale"           // it had been true, and was so no longer when the stated age began
	Early     Kind = "too early"       // it was shown before anybody had asked for the change
	Untrue    Kind = "untrue"          // it was never so at that revision
	Overdue   Kind = "led too long"    // a leader was shown whose lease was over, or none while one led
	Unbounded Kind = "without a bound" // it is older than it may be, or does not say how old that is
	Backwards Kind = "went back"       // the same reader had seen a later revision
	Behind    Kind = "behind"          // the reader had said that it knows a later revision
)

// Violation is one case in which a property does not hold.
type Violation struct {
	Kind   Kind
	Detail string // who, what and when
}

// String is both.
func (v Violation) String() string { return fmt.Sprintf("%s: %s", v.Kind, v.Detail) }

// Report is what a checker found.
type Report struct {
	Checked    int // changes of the history, for each who was to hear of them; or readings
	Duplicates int // deliveries of what the consumer had got before
	Violations []Violation
}

// Err names the first few violations, and says how many there are. It is nil if there are none.
func (r Report) Err() error {
	const enough = 20
	n := len(r.Violations)
	if n == 0 {
		return nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d violations", n)
	for _, v := range r.Violations[:min(n, enough)] {
		fmt.Fprintf(&text, "\n%v", v)
	}
	if n > enough {
		text.WriteString("\n…")
	}
	return fmt.Errorf("%s", text.String())
}

func (r *Report) accuse(k Kind, format string, args ...any) {
	r.Violations = append(r.Violations, Violation{k, fmt.Sprintf(format, args...)})
}
