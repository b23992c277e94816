package firestore_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/storetest"
)

// agent is a candidate with a key.
type agent struct {
	id  leadership.CandidateID
	key leadership.Key
}

func newAgent(id leadership.CandidateID) agent { return agent{id, leadership.NewKey()} }

func (a agent) ask(e leadership.Election) leadership.AcquireRequest {
	return leadership.AcquireRequest{Election: e, CandidateID: a.id, Key: &a.key}
}

func (a agent) lease(e leadership.Election, token leadership.Token) leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: e, CandidateID: a.id, Key: a.key, Token: token}
}

func (a agent) renewal(e leadership.Election, token leadership.Token) rule.Renewal {
	return rule.Renewal{Election: e, CandidateID: a.id, KeyHash: a.key.Hash(), Token: token}
}

func TestAGuardThatFailedIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	rpcs := new(storetest.RPCs)
	s, other := p.open(t, grpc.WithStatsHandler(rpcs)), p.open(t)
	ann := acquired(t, s, "jobs")
	if _, err := service.New(other).Renew(t.Context(), ann.lease("jobs", 1)); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{"Commit"}, nil} {
		rpcs.Take()
		if got := s.Renew(t.Context(), []rule.Renewal{ann.renewal("jobs", 1)})[0].Err; !errors.Is(got, rule.ErrNotRenewed) {
			t.Errorf("got %v, want ErrNotRenewed", got)
		}
		if diff := cmp.Diff(want, rpcs.Take()); diff != "" {
			t.Errorf("RPCs (-want +got):\n%s", diff)
		}
	}
}
