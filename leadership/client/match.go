package client

import (
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// expected is what a lease has to say to be the answer to a call. Whoever stands between client and server may mix up the replies, and a
// leader that believes in another's lease leads without one.
type expected struct {
	election leadership.Election
	held     bool
	leader   leadership.CandidateID // if it is held; "" for anybody
	token    leadership.Token       // if it is held; 0 for any
}

// match returns what is wrong with the lease.
func (x expected) match(l leadership.Lease) error {
	switch {
	case l.Election != x.election:
		return fmt.Errorf("it is about election %s, not %q", wire.Quote(string(l.Election)), x.election)
	case !x.held:
		return nil
	case l.State != leadership.Held:
		return fmt.Errorf("it says that nobody leads election %q", x.election)
	case x.leader != "" && l.LeaderID != x.leader:
		return fmt.Errorf("it says that %s leads election %q, not %q", wire.Quote(string(l.LeaderID)), x.election, x.leader)
	case x.token != 0 && l.Token != x.token:
		return fmt.Errorf("it has fencing token %d of election %q, not %d", l.Token, x.election, x.token)
	}
	return nil
}

// ofRenewal is what the answer to a renewal says.
func ofRenewal(r leadership.LeaseRequest) expected {
	return expected{election: r.Election, held: true, leader: r.CandidateID, token: r.Token}
}

// ofCheck is what the answer to a check says.
func ofCheck(r leadership.TokenCheck) expected {
	return expected{election: r.Election, held: true, token: r.Token}
}

// maxBound is more than any server keeps what it has read.
const maxBound = time.Hour

// matchReading returns what is wrong with a lease that may be old.
func matchReading(r leadership.ReadRequest, l leadership.Lease, staleMs int64) error {
	switch {
	case l.Revision < r.Known:
		return fmt.Errorf("it is at revision %d, and revision %d was known", l.Revision, r.Known)
	case staleMs != 0 && r.Strong:
		return fmt.Errorf("it may be %d ms old, and was asked for as it is", staleMs)
	case staleMs < 0 || staleMs > maxBound.Milliseconds():
		return fmt.Errorf("it may be %d ms old", staleMs)
	}
	return expected{election: r.Election}.match(l)
}

// matchEvents returns what is wrong with a history.
func matchEvents(e leadership.Election, events []leadership.Event) error {
	for _, event := range events {
		if event.Election != e {
			return fmt.Errorf("it has an event of election %s, not %q", wire.Quote(string(event.Election)), e)
		}
	}
	return nil
}
