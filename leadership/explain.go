package leadership

import (
	"fmt"
	"time"
)

// Cause is one reason why a candidate does not lead, or may soon not lead any more.
type Cause struct {
	Code      Reason
	Until     time.Time     // zero if that is not known
	Left      time.Duration // until then; 0 if it is not known
	LeaderID  CandidateID   // with HELD
	Only      CandidateID   // with ASSIGNED: the one candidate that is granted
	Override  OverrideID    // the standing order
	Actor     string        // that gave it
	Pattern   CandidateID   // with BANNED: all candidates of this pattern are
	Elections Election      // with HALTED: all elections of this pattern are
	Principal string        // with BANNED: it is banned, and the candidate only if it calls as it
	Because   string        // what that principal said
	Position  int           // in line, or with BALLOT, OUTRANKED and QUORUM among the bids, from 1; 0 if it is not known
	Of        int           // with IN_LINE: how many stand in line at this instance; in a ballot: how many have bid
	Have      int           // with QUORUM, and with HELD for a challenger without one: how many members are present
	Need      int           // so, too: how many must be
}

// Explanation says whether a candidate leads and, if not, why.
type Explanation struct {
	Election    Election
	CandidateID CandidateID
	Leads       bool
	Seat        int     // at which it leads, of an election that has seats
	Causes      []Cause // the most lasting first
	ReadAt      time.Time
	Reads       int // of seats, strongly, for it; not told to clients
}

// Banned names what a cause of the code BANNED bars, where it bars the candidate.
func (c Cause) Banned(by CandidateID) string {
	switch {
	case c.Principal != "":
		return fmt.Sprintf("principal %q, as which %q calls,", c.Principal, by)
	case c.Pattern != "":
		return fmt.Sprintf("%q, as each candidate of %q,", by, c.Pattern)
	}
	return fmt.Sprintf("%q", by)
}
