package client_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
)

// configured configures an election of a test.
func configured(t *testing.T, server *clienttest.Server, e leadership.Election, c leadership.Config) {
	t.Helper()
	c.LeaseDuration = 30 * time.Second
	_, err := server.Client(client.Candidate{}).Do(t.Context(), leadership.Configure{Election: e, Config: c})
	require.NoError(t, err)
}

func TestALeaseThatStandsOnAnotherEndsWithIt(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *clienttest.Server, *client.Lease){
		"the parent resigns":    func(t *testing.T, _ *clienttest.Server, l *client.Lease) { l.Resign(t.Context()) },
		"the parent is deleted": func(t *testing.T, s *clienttest.Server, _ *client.Lease) { overrule(t.Context(), s) },
		"both are cut off":      func(_ *testing.T, s *clienttest.Server, _ *client.Lease) { s.Cut() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *clienttest.Server) {
				configured(t, server, "global", leadership.Config{LeadersOf: "rep"})
				configured(t, server, "reports", leadership.Config{})
				_, err := server.Client(named("ann")).TryAcquire(t.Context(), "global")
				assert.ErrorIs(t, err, leadership.NotEligible, "without a lease to stand on")
				ann := server.Client(named("ann"))
				parent := lead(t, ann)
				child, err := ann.As(client.Candidate{Via: parent}).Campaign(t.Context(), "global")
				require.NoError(t, err)
				time.Sleep(time.Hour)
				if !parent.Valid() || !child.Valid() || child.CandidateID() != "ann" {
					t.Fatalf("after an hour the parent is valid: %t, the child: %t", parent.Valid(), child.Valid())
				}
				end(t, server, parent)
				<-parent.Context().Done()
				if child.Valid() || child.Context().Err() == nil {
					t.Error("the child is valid, and its parent is not")
				}
				_, err = ann.As(client.Candidate{Via: parent}).Campaign(t.Context(), "global")
				assert.ErrorIs(t, err, client.ErrOrphaned, "a campaign on a lease that has")
				server.Heal()
				child.Resign(t.Context())
			})
		})
	}
}

func TestACandidateCannotStandOnTheLeaseOfAnother(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		parent := lead(t, server.Client(named("ann")))
		for _, c := range []client.Candidate{{ID: "bob", Via: parent}, {ViaPeer: "eu"}, {HandOverWithin: time.Millisecond}} {
			_, err := server.Client(c).Campaign(t.Context(), "global")
			assert.ErrorIs(t, err, leadership.InvalidArgument, "%+v", c)
		}
		parent.Resign(t.Context())
	})
}

func TestALeaderDelegatesPartsOfItsTask(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		configured(t, server, "reports", leadership.Config{Delegation: leadership.Delegation{Depth: 2, Children: 2, Budget: 100}})
		l := lead(t, server.Client(named("ann")))
		limits := leadership.Limits{Depth: leadership.AsParent, Children: leadership.AsParent, Budget: 60}
		for range 2 { // the same call again changes nothing
			if e, err := l.Delegate(t.Context(), "a", limits); err != nil || e != "reports.a" {
				t.Fatalf("%q, %v", e, err)
			}
		}
		_, err := l.Delegate(t.Context(), "b", limits)
		assert.ErrorIs(t, err, leadership.LimitExceeded, "beyond the budget")
		part, err := server.Client(named("bob")).Campaign(t.Context(), "reports.a")
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		assert.True(t, part.Valid(), "a part ends though its parent goes on")
		tree, err := server.Client(client.Candidate{}).Tree(t.Context(), "reports")
		if err != nil || !tree.Complete || len(tree.Leases) != 2 || tree.Leases[1].LeaderID != "bob" {
			t.Errorf("the tree is %+v, %v", tree, err)
		}
		l.Resign(t.Context())
		began := time.Now()
		<-part.Context().Done()
		if d := time.Since(began); d > 30*time.Second {
			t.Errorf("a part goes on for %v after its parent has ended", d)
		}
		part.Resign(t.Context())
	})
}
