package client_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
)

func TestAnotherClientGoesOnWithALease(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		first := lead(t, server.Client(named("ann")))
		require.NoError(t, first.Report(client.Report{Progress: 7, Tasks: 3}))
		time.Sleep(time.Minute)
		first.LetEnd()
		second, err := server.Client(client.Candidate{}).Resume(t.Context(), first.Handle())
		require.NoError(t, err)
		// the server would refuse a report whose other counter has fallen
		require.NoError(t, second.Report(client.Report{Progress: 8}))
		time.Sleep(time.Hour)
		if !second.Valid() || second.Token() != first.Token() || second.CandidateID() != "ann" {
			t.Errorf("the lease of %q, token %d, valid %v", second.CandidateID(), second.Token(), second.Valid())
		}
		l, err := server.Client(client.Candidate{}).Get(t.Context(), "reports")
		if err != nil || l.Report.Report().Progress != 8 || l.Report.Report().Tasks != 3 || l.Revision != 1 {
			t.Errorf("the election is %+v, %v; want both counters, and nothing but the grant", l, err)
		}
		if err := second.Resign(t.Context()); err != nil || leader(t, server) != "" {
			t.Errorf("resigned: %v; %q leads", err, leader(t, server))
		}
	})
}

func TestALeaseThatIsOverIsNotResumed(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		c := server.Client(named("ann"))
		released := lead(t, c)
		released.Resign(t.Context())
		expired := lead(t, c)
		expired.LetEnd()
		time.Sleep(time.Minute)
		for _, l := range []*client.Lease{released, expired} {
			if _, err := c.Resume(t.Context(), l.Handle()); !errors.Is(err, leadership.LeaseLost) {
				t.Errorf("the lease with token %d: %v", l.Token(), err)
			}
		}
		if leader(t, server) != "" {
			t.Error("a lease was granted")
		}
	})
}

func TestALeaseIsResumedInItsNewEpoch(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		limit(t, server, leadership.TermPolicy{Approval: leadership.ApprovalPolicy{Every: time.Hour}})
		c := server.Client(named("ann"))
		before := lead(t, c)
		before.LetEnd()
		order(t, server, leadership.Order{Kind: leadership.OrderApprove, Token: 1, NewEpoch: true})
		after, err := c.Resume(t.Context(), before.Handle())
		if err != nil || after.Token() != 2 || !after.Valid() {
			t.Fatalf("%+v, %v; want token 2", after, err)
		}
		after.Resign(t.Context())
	})
}
