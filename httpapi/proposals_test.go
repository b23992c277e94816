package httpapi_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

const asksToScale = `{"candidateId":"worker-17","proposalId":"scale-3","kind":"scale"`

func TestAProposalIsMadeDecidedAndRead(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.onPlanner(":propose", asksToScale+"}").wantRefusal(t, leadership.NotFound) // the election was never seen
	w.acquire()
	const open = `{"election":"planner","proposalId":"scale-3","candidateId":"worker-17","kind":"scale","data":{"to":3},"at":"2027-03-01T12:00:00Z","until":"2027-03-01T12:05:00Z"}`
	for range 2 {
		if a := w.onPlanner(":propose", asksToScale+`,"data":{ "to" : 3 },"ttl":"5m"}`); a.status != 200 || strings.TrimSpace(string(a.body)) != open {
			t.Errorf("proposed: %d %s, want %s", a.status, a.body, open)
		}
	}
	w.onPlanner(":propose", asksToScale+`,"data":4}`).wantRefusal(t, leadership.InvalidArgument)
	w.onPlanner(":propose", `{"candidateId":"a","proposalId":"b","kind":"c","data":"`+strings.Repeat("x", leadership.MaxProposalBytes)+`"}`).wantRefusal(t, leadership.PayloadTooLarge)
	for body, where := range map[string]string{
		`{"candidateId":"a","proposalId":"` + strings.Repeat("x", 129) + `","kind":"c"}`: "/proposalId",
		`{"candidateId":"a","proposalId":"ü","kind":"c"}`:                                "/proposalId",
		`{"candidateId":"a","proposalId":"b","kind":""}`:                                 "/kind",
		`{"candidateId":"a","proposalId":"b","kind":"` + strings.Repeat("x", 65) + `"}`:  "/kind",
		`{"candidateId":"a","proposalId":"b","kind":"c","ttl":"0s"}`:                     "/ttl",
		`{"candidateId":"a","proposalId":"b","kind":"c","ttl":"25h"}`:                    "/ttl",
		`{"candidateId":"a","proposalId":"b","kind":"c","wait":"61s"}`:                   "/wait",
		`{"candidateId":"a","proposalId":"b","kind":"c","ttl":"2s","wait":"3s"}`:         "/wait",
	} {
		if p := w.onPlanner(":propose", body).wantRefusal(t, leadership.InvalidArgument); len(p.Errors) != 1 || p.Errors[0].Pointer != where {
			t.Errorf("%s: %+v, want one about %s", body, p, where)
		}
	}
	w.onPlanner(":decide", leads(`"proposalId":"scale-3","verdict":"perhaps"`)).wantRefusal(t, leadership.InvalidArgument)
	w.onPlanner(":decide", leads(`"proposalId":"scale-4","verdict":"accepted"`)).wantRefusal(t, leadership.NotFound)
	w.onPlanner(":decide", asOther+`,"fencingToken":1,"proposalId":"scale-3","verdict":"accepted"}`).wantRefusal(t, leadership.LeaseLost)
	var p leadership.Proposal
	for range 2 {
		w.onPlanner(":decide", leads(`"proposalId":"scale-3","verdict":"accepted","note":"at noon"`)).into(t, &p)
		if d := p.Decision; d == nil || *d != (leadership.Decision{Verdict: leadership.ProposalAccepted, Note: "at noon", Token: 1, LeaderID: "agent-7", At: d.At}) {
			t.Errorf("decided: %+v", p)
		}
	}
	if p := w.onPlanner(":decide", leads(`"proposalId":"scale-3","verdict":"rejected"`)).wantRefusal(t, leadership.InvalidArgument); !strings.Contains(p.Detail, `accepted by "agent-7"`) {
		t.Errorf("another verdict: %+v", p)
	}
	w.onPlanner(":propose", asksToScale+`,"data":{"to":3},"wait":"60s"}`).into(t, &p)
	var all leadership.Proposals
	w.do("GET", toPlanner+"/proposals", "").into(t, &all)
	if p.Decision == nil || len(all.Open) != 0 || len(all.Decided) != 1 || all.Decided[0].Decision.Note != "at noon" {
		t.Errorf("there is %+v, and %+v", p, all)
	}
	w.onPlanner(":propose", `{"candidateId":"a","proposalId":"b","kind":"c","ttl":"24h"}`)
	w.clock.Advance(31 * time.Second)
	var g wire.Grant
	w.onPlanner(":acquire", asOther+`,"inherit":true}`).into(t, &g)
	if len(g.Proposals) != 1 || g.Proposals[0].ID != "b" {
		t.Errorf("the next leader inherits %+v", g.Proposals)
	}
}

// patient is a service that records how long a proposal may take.
type patient struct {
	instance.Service
	left time.Duration
}

func (p *patient) Propose(ctx context.Context, r leadership.ProposeRequest) (leadership.Proposal, error) {
	by, _ := ctx.Deadline()
	p.left = time.Until(by)
	return leadership.Proposal{}, leadership.StoreUnavailable
}

func TestAProposalMayTakeAsLongAsItsCallerWaits(t *testing.T) {
	t.Parallel()
	p := &patient{}
	w := newFixtureOn(t, httpapi.Config{Service: p, RequestTimeout: time.Minute})
	w.onPlanner(":propose", asksToScale+`,"wait":"45s"}`)
	if p.left <= time.Minute {
		t.Errorf("the call of the service may take %v, want the wait in addition to the time of other calls", p.left)
	}
}
