package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"regent/leadership"
)

// ProposalCall is a proposal, or a leader's decision on one, with all its repetitions.
type ProposalCall struct {
	Who      string                     `json:"who"`
	Election leadership.Election        `json:"election"`
	ID       leadership.ProposalID      `json:"id"`
	Token    leadership.Token           `json:"token,omitempty"`   // of the leader that decides; 0 for the proposer
	Verdict  leadership.ProposalVerdict `json:"verdict,omitempty"` // as it was answered; "" if it is open, or there was no answer
	By       leadership.Token           `json:"by,omitempty"`      // the leader that has decided, as it was answered
	Asked    time.Duration              `json:"asked"`
	Answered time.Duration              `json:"answered"` // Forever if it was not, or was refused
}

func (c ProposalCall) String() string {
	verb := "propose"
	if c.Token > 0 {
		verb = fmt.Sprintf("decide under token %d", c.Token)
	}
	return fmt.Sprintf("%s %s %s in %s, from %v to %v: %q by token %d", c.Who, verb, c.ID, c.Election, c.Asked, c.Answered, c.Verdict, c.By)
}

// PR checks proposals, of which each has an id of its own and a ttl longer than the recording
// lasts: one that is decided is decided for all that ask, by one leader and with one verdict; and
// once a later leader has decided any, no earlier one does.
func PR(r Recording) (report Report) {
	calls := slices.DeleteFunc(slices.Clone(r.Proposals), func(c ProposalCall) bool { return c.Answered == Forever })
	slices.SortStableFunc(calls, func(x, y ProposalCall) int { return cmp.Compare(x.Asked, y.Asked) })
	for i, c := range calls {
		report.Checked++
		if c.Token > 0 && (c.Verdict == "" || c.By > c.Token) {
			report.add(Untrue, "%v", c)
		}
		for _, before := range calls[:i] { // asked before
			if before.Election != c.Election || before.Verdict == "" {
				continue
			}
			first := before.Answered <= c.Asked
			if first && c.Token > 0 && c.By == c.Token && before.By > c.By {
				report.add(Unfenced, "%v; %v", before, c)
			}
			switch {
			case before.ID != c.ID:
			case c.Verdict != "" && (before.Verdict != c.Verdict || before.By != c.By):
				report.add(Twice, "%v; %v", before, c)
			case first && c.Verdict == "":
				report.add(Untrue, "%v; %v", before, c)
			}
		}
	}
	return report
}
