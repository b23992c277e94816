package leadership

import (
	"fmt"
	"time"
)

// Cause is one reason why a candidate does not lead, or may soon stop leading.
type Cause struct {
	Code      Reason
	Until     time.Time     // when the cause ends; zero if unknown
	Left      time.Duration // the time until then; 0 if unknown
	LeaderID  CandidateID   // with HELD
	Only      CandidateID   // with ASSIGNED: the one candidate that is granted
	Override  OverrideID    // the standing order
	Actor     string        // the principal that gave the order
	Pattern   CandidateID   // with BANNED: the pattern of ids that is banned, if it is one
	Elections Election      // with HALTED: the pattern of elections that is halted
	Principal string        // with BANNED: the banned principal, if not an id is; it bars the candidate when that calls as it
	Because   string        // the reason that Actor gave
	Position  int           // from 1, in line or, with BALLOT, OUTRANKED and QUORUM, among the bids; 0 if unknown
	Of        int           // with IN_LINE: how many candidates wait at this instance; in a ballot: how many have bid
	Have      int           // with QUORUM, and with HELD for a challenger without a quorum: how many members are present
	Need      int           // with Have: how many must be present
}

// Explanation says whether a candidate leads and, if not, why.
type Explanation struct {
	Election    Election
	CandidateID CandidateID
	Leads       bool
	Seat        int     // the seat at which it leads, if the election has seats
	Causes      []Cause // those about the candidate first, then those about all candidates
	ReadAt      time.Time
	Reads       int // how many seats were read strongly for it; not told to clients
}

// Banned describes, for a sentence, what a cause with the code BANNED bars: a principal, a pattern
// of ids, or the candidate itself.
func (c Cause) Banned(by CandidateID) string {
	switch {
	case c.Principal != "":
		return fmt.Sprintf("principal %q, as which %q calls,", c.Principal, by)
	case c.Pattern != "":
		return fmt.Sprintf("%q, as each candidate of %q,", by, c.Pattern)
	}
	return fmt.Sprintf("%q", by)
}
