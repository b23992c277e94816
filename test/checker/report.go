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

// The violations of ME1 and ME2, beside Backwards, Early, Stale and Untrue.
const (
	TwoLeaders Kind = "two leaders" // a lease was granted while another lasted, or two believed that they led
	TooSoon    Kind = "too soon"    // a lease was granted before the one before had ended by itself, or in its lock delay
	CutShort   Kind = "cut short"   // a lease ended before the end that its leader was promised
	Revived    Kind = "revived"     // a heartbeat counted that came after the end of its lease
	Outlived   Kind = "outlived"    // somebody believed in a lease that was over
)

// The violations of FT, beside Phantom and Untrue.
const (
	NotNext  Kind = "not the next token" // a grant's token was not the one after the last, or a token changed without a grant
	Shared   Kind = "shared"             // two keys were told the same token
	Unfenced Kind = "unfenced"           // a write with an old token was let in
	ShutOut  Kind = "shut out"           // a write with the newest token was not let in
)

// The violations of ID, beside Untrue.
const (
	Twice   Kind = "twice"               // the same call again did something again
	Missing Kind = "missing"             // what was acknowledged is not in the history
	Denied  Kind = "done though refused" // the history has what a caller was told was not done
)

// The violations of LV.
const (
	Leaderless Kind = "leaderless" // nobody led, though somebody was willing and nothing was in the way
	Needless   Kind = "needless"   // a leader that was willing was replaced, though nothing was in the way
)

// The violations of RC, beside Untrue.
const (
	Forgotten  Kind = "forgotten"   // what was acknowledged, or shown, is not in the history that was read at the end
	RolledBack Kind = "rolled back" // what was shown later is older
)

// The violations of Linear and of Free.
const (
	Illegal   Kind = "illegal"    // there is no order of the calls in which the rules give these answers
	Undecided Kind = "no verdict" // none was found in the time
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
	Checked    int // changes of the history, for each who was to hear of them; or readings, calls, beliefs, terms
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
