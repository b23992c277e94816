package checker

import (
	"fmt"
	"strings"
)

// Kind names a way to violate a property.
type Kind string

// The violations of EV.
const (
	Broken  Kind = "broken history" // the truth itself has a gap
	Lost    Kind = "lost"           // a change was not announced
	Phantom Kind = "phantom"        // what was announced, or read, was never committed
	// a change was announced for the first time after a later one of its election
	Misordered Kind = "out of order"
	Altered    Kind = "differs from the truth"
)

// The violations of BS, beside Phantom.
const (
	Stale  Kind = "stale"     // it had been true, but no longer when the stated age began
	Early  Kind = "too early" // it was shown before the change was asked for
	Untrue Kind = "untrue"    // it was never so at that revision
	// a leader was shown whose lease was over, or none while one led
	Overdue Kind = "led too long"
	// it is older than it may be, or does not say how old that is
	Unbounded Kind = "without a bound"
	Backwards Kind = "went back" // the same reader had seen a later revision
	Behind    Kind = "behind"    // the reader had said that it knows a later revision
)

// The violations of ME1 and ME2, beside Backwards, Early, Stale and Untrue.
const (
	// a lease was granted while another lasted, or two candidates believed that they led
	TwoLeaders Kind = "two leaders"
	// a lease was granted before the previous one had ended by itself, or in its lock delay
	TooSoon  Kind = "too soon"
	CutShort Kind = "cut short" // a lease ended before the end promised to its leader
	Revived  Kind = "revived"   // a heartbeat counted that came after the end of its lease
	Outlived Kind = "outlived"  // a candidate believed in a lease that was over
	// an operator unlocked an election without having acknowledged until when two may believe
	Unacknowledged Kind = "unacknowledged"
)

// The violations of FT, beside Phantom.
const (
	// a grant's token was not the one after the last, or a token changed without a grant
	NotNext  Kind = "not the next token"
	Shared   Kind = "shared"   // two keys were told the same token
	Unfenced Kind = "unfenced" // a write with an old token was admitted
	ShutOut  Kind = "shut out" // a write with the newest token was not admitted
)

// The violations of ID, beside Untrue.
const (
	Twice   Kind = "twice"   // the repeated call did something again
	Missing Kind = "missing" // what was acknowledged is not in the history
	// the history has something that its caller was told was refused
	Denied Kind = "done though refused"
)

// The violations of LV.
const (
	// no one led, though a candidate was willing and nothing prevented it
	Leaderless Kind = "leaderless"
	// a willing leader was replaced, though nothing prevented it from renewing
	Needless Kind = "needless"
)

// The violations of Told, beside Phantom and Untrue, and of Own.
const (
	Incomplete Kind = "incomplete" // a lease was described without all of its parts
	Unlimited  Kind = "unlimited"  // a lease was told to last beyond that on which it stands
	Kept       Kind = "kept waiting"
)

// The violations of OV.
const (
	Barred Kind = "barred" // a lease was granted against an order that stands
)

// The violations of SE, beside Barred, TwoLeaders and Outlived.
const (
	Beyond Kind = "beyond the seats" // one was granted that the election does not have
)

// The violations of CH, beside Untrue, Twice, TooSoon, Needless and Phantom.
const (
	Witness    Kind = "a witness leads"
	Ineligible Kind = "not eligible"   // the winner lacks what the policy requires
	Misranked  Kind = "misranked"      // the ranking that the grant tells of cannot be repeated
	Passed     Kind = "passed over"    // a better candidate waited, and was not counted
	Few        Kind = "without quorum" // too few members were present
	Shortened  Kind = "shortened"      // a leader that hands over did not lead for as long as it was promised
)

// The violations of Linear.
const (
	Illegal   Kind = "illegal"    // no order of the calls lets the rules give these answers
	Undecided Kind = "no verdict" // none was found in the time
)

// Violation is one case in which a property does not hold.
type Violation struct {
	Kind   Kind
	Detail string // which caller, what and when
}

// String is both.
func (v Violation) String() string { return fmt.Sprintf("%s: %s", v.Kind, v.Detail) }

// Report is what a checker found.
type Report struct {
	Checked    int // changes of the history, for each consumer; or readings, calls, beliefs, terms
	Duplicates int // deliveries of what the consumer had received before
	Violations []Violation
}

// Err names the first violations and their number. It is nil if there are none.
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

func (r *Report) add(k Kind, format string, args ...any) {
	r.Violations = append(r.Violations, Violation{k, fmt.Sprintf(format, args...)})
}
