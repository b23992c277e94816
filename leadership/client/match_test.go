package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
	"regent/leadership/client"
)

func leaseOf(election, leader, token string) string {
	return `{"election":"` + election + `","state":"held","leaderId":"` + leader + `","fencingToken":` + token +
		`,"revision":1,"leaseDuration":"30s","expiresInMs":30000,"configuration":{"leaseDuration":"30s","lockDelay":"0s"}}`
}

// answering returns a client of a server that answers every request with the document.
func answering(t *testing.T, document string) *client.Client {
	t.Helper()
	return serve(t, replying(http.StatusOK, "application/json", document))
}

func TestALeaseOfAnotherRequestIsNotBelieved(t *testing.T) {
	t.Parallel()
	ours := leaseOf("planner", "agent-7", "1")
	vacant := `{"election":"planner","state":"vacant","fencingToken":1,"revision":2,"leaseDuration":"30s","configuration":{"leaseDuration":"30s","lockDelay":"0s"}}`
	one := []string{"acquire", "renew", "release", "check", "get", "read", "configure", "delete", "join"}
	for _, c := range []struct {
		name, lease string
		refused     []string // of the calls above; the others accept it
	}{
		{"ours", ours, nil},
		{"another election", leaseOf("scribe", "agent-7", "1"), one},
		{"another leader", leaseOf("planner", "agent-8", "1"), []string{"acquire", "renew"}},
		{"another token", leaseOf("planner", "agent-7", "2"), []string{"renew", "check"}},
		{"vacant", vacant, []string{"acquire", "renew", "check"}},
	} {
		cl := answering(t, strings.TrimSuffix(c.lease, "}")+`,"key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"}`)
		for _, name := range one {
			k := calls()[name]
			err := k.do(t.Context(), cl)
			switch refused := strings.Contains(strings.Join(c.refused, " "), name); {
			case refused && !errors.Is(err, lost(k.mutates)):
				t.Errorf("%s: %s becomes %v, want %s", name, c.name, err, lost(k.mutates))
			case !refused && err != nil:
				t.Errorf("%s: %s becomes %v", name, c.name, err)
			}
		}
	}
}

func TestResultsThatAreNotAtTheirPlaceAreNotBelieved(t *testing.T) {
	t.Parallel()
	result := func(election, lease string) string { return `{"election":"` + election + `","lease":` + lease + `}` }
	problem := func(election string) string {
		return `{"election":"` + election + `","error":{"code":"LEASE_LOST","status":409,"title":"Lease lost","detail":"stop","type":"about:blank"}}`
	}
	first, second := leaseOf("planner", "agent-7", "1"), leaseOf("scribe", "agent-7", "2")
	for _, c := range []struct {
		name          string
		results       []string
		renews, check bool // whether each batch accepts it
	}{
		{"as asked", []string{result("planner", first), result("scribe", second)}, true, true},
		{"a refusal", []string{result("planner", first), problem("scribe")}, true, true},
		{"swapped", []string{result("scribe", second), result("planner", first)}, false, false},
		{"a refusal of another", []string{result("planner", first), problem("planner")}, false, false},
		{"a lease of another election", []string{result("planner", first), result("scribe", first)}, false, false},
		{"a lease of another leader", []string{result("planner", leaseOf("planner", "agent-8", "1")), result("scribe", second)}, false, true},
		{"a lease with another token", []string{result("planner", leaseOf("planner", "agent-7", "9")), result("scribe", second)}, false, false},
	} {
		cl := answering(t, `{"results":[`+strings.Join(c.results, ",")+`]}`)
		_, err := cl.BatchRenew(t.Context(), []leadership.LeaseRequest{
			{Election: "planner", CandidateID: "agent-7", Token: 1}, {Election: "scribe", CandidateID: "agent-7", Token: 2},
		})
		if c.renews && err != nil || !c.renews && !errors.Is(err, leadership.OutcomeUnknown) {
			t.Errorf("renewals: %s becomes %v", c.name, err)
		}
		_, err = cl.BatchCheckTokens(t.Context(), []leadership.TokenCheck{{Election: "planner", Token: 1}, {Election: "scribe", Token: 2}})
		if c.check && err != nil || !c.check && !errors.Is(err, leadership.StoreUnavailable) {
			t.Errorf("checks: %s becomes %v", c.name, err)
		}
	}
}

func TestAnEventOfAnotherElectionIsNotBelieved(t *testing.T) {
	t.Parallel()
	history := func(ctx context.Context, election string) error {
		cl := answering(t, `{"events":[{"election":"`+election+`","revision":1,"type":"configured","at":"2027-03-01T12:00:00Z","fencingToken":0}],"nextAfter":1}`)
		_, err := cl.Events(ctx, leadership.EventsRequest{Election: "planner"})
		return err
	}
	assert.NoError(t, history(t.Context(), "planner"))
	assert.ErrorIs(t, history(t.Context(), "scribe"), leadership.StoreUnavailable)
}
