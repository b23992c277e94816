package client

import (
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// expected describes the lease that answers a call. A proxy between client and server may mix up
// replies, and a leader that believes in another's lease leads without one.
type expected struct {
	election leadership.Election
	child    string // below that election, if the answer is about a child
	seats    bool   // the answer may be about a seat of that election
	held     bool
	leader   leadership.CandidateID // of a held lease; "" for any
	token    leadership.Token       // of a held lease; 0 for any
}

func (x expected) match(l leadership.Lease) error {
	switch {
	case x.seats && l.Seat > 0 && l.Whole() == x.election:
		x.election = l.Election
		return x.match(l)
	case x.child != "":
		return expected{election: x.election + "." + leadership.Election(x.child)}.match(l)
	case l.Election != x.election:
		return fmt.Errorf("it is about election %s, not %q", wire.Quote(string(l.Election)), x.election)
	case !x.held:
		return nil
	case l.State != leadership.Held:
		return fmt.Errorf("it says that election %q is vacant", x.election)
	case x.leader != "" && l.LeaderID != x.leader:
		return fmt.Errorf("it says that %s leads election %q, not %q", wire.Quote(string(l.LeaderID)), x.election, x.leader)
	case x.token != 0 && l.Token != x.token:
		return fmt.Errorf("it has fencing token %d of election %q, not %d", l.Token, x.election, x.token)
	}
	return nil
}

func ofRenewal(r leadership.LeaseRequest) expected {
	return expected{election: r.Election, held: true, leader: r.CandidateID, token: r.Token}
}

func ofCheck(r leadership.TokenCheck) expected {
	return expected{election: r.Election, held: true, token: r.Token}
}

// maxBound is longer than any server caches a read.
const maxBound = time.Hour

// matchReading returns an error if a read that may be stale does not answer the request.
func matchReading(r leadership.ReadRequest, l leadership.Lease, staleMs int64) error {
	switch {
	case l.Revision < r.Known:
		return fmt.Errorf("it is at revision %d, but revision %d was known", l.Revision, r.Known)
	case staleMs != 0 && r.Strong:
		return fmt.Errorf("it may be %d ms old, but a strong read was asked for", staleMs)
	case staleMs < 0 || staleMs > maxBound.Milliseconds():
		return fmt.Errorf("it may be %d ms old", staleMs)
	}
	return expected{election: r.Election}.match(l)
}

// matchEvents returns an error if an event belongs to another election.
func matchEvents(e leadership.Election, events []leadership.Event) error {
	for _, event := range events {
		if event.Election != e {
			return fmt.Errorf("it has an event of election %s, not %q", wire.Quote(string(event.Election)), e)
		}
	}
	return nil
}
