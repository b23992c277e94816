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

// configured configures an election of a test.
func configured(t *testing.T, server *clienttest.Server, e leadership.Election, c leadership.Config) {
	t.Helper()
	c.LeaseDuration = 30 * time.Second
	if _, err := server.Client(client.Candidate{}).Do(t.Context(), leadership.Configure{Election: e, Config: c}); err != nil {
		t.Fatal(err)
	}
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
				if _, err := server.Client(named("ann")).TryAcquire(t.Context(), "global"); !errors.Is(err, leadership.NotEligible) {
					t.Errorf("without a lease to stand on: %v", err)
				}
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
				if _, err := ann.As(client.Candidate{Via: parent}).Campaign(t.Context(), "global"); !errors.Is(err, client.ErrOrphaned) {
					t.Errorf("a campaign on a lease that has ended: %v", err)
				}
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
			if _, err := server.Client(c).Campaign(t.Context(), "global"); !errors.Is(err, leadership.InvalidArgument) {
				t.Errorf("%+v: %v", c, err)
			}
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
		if _, err := l.Delegate(t.Context(), "b", limits); !errors.Is(err, leadership.LimitExceeded) {
			t.Errorf("beyond the budget: %v", err)
		}
		part, err := server.Client(named("bob")).Campaign(t.Context(), "reports.a")
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		if !part.Valid() {
			t.Error("a part ends though its parent goes on")
		}
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
