package httpapi_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// membered is a service that gives set answers to calls about members, and records the last
// request.
type membered struct {
	instance.Service
	last    any
	left    time.Duration // until the deadline of the call
	members leadership.Members
	err     error
}

func (m *membered) note(ctx context.Context, request any) {
	by, _ := ctx.Deadline()
	m.last, m.left = request, time.Until(by)
}

func (m *membered) Join(ctx context.Context, r leadership.JoinRequest) (leadership.Reading, error) {
	m.note(ctx, r)
	lease := leadership.Lease{Election: r.Election, State: leadership.Vacant, Token: 7, Revision: 9, LeaseDuration: time.Second, ReadAt: time.Unix(1, 0)}
	lease.Config.LeaseDuration = time.Second
	return leadership.Reading{Lease: lease, Age: 1500 * time.Millisecond, Bound: 5 * time.Second}, m.err
}

func (m *membered) Leave(ctx context.Context, r leadership.LeaveRequest) error {
	m.note(ctx, r)
	return m.err
}

func (m *membered) Members(ctx context.Context, e leadership.Election) (leadership.Members, error) {
	m.note(ctx, e)
	return m.members, m.err
}

func (m *membered) AwaitAcknowledgement(ctx context.Context, r leadership.AcknowledgementRequest) (leadership.Acknowledgement, error) {
	m.note(ctx, r)
	return leadership.Acknowledgement{Election: r.Election, Token: r.Token, Need: r.Need, Missing: []leadership.CandidateID{"node-2"}}, m.err
}

func (m *membered) CheckToken(ctx context.Context, r leadership.TokenCheck) (leadership.Lease, error) {
	m.note(ctx, r)
	return leadership.Lease{}, m.err
}

func (m *membered) BatchCheckTokens(ctx context.Context, batch []leadership.TokenCheck) ([]leadership.Result, error) {
	m.note(ctx, batch)
	return []leadership.Result{{Err: m.err}, {Err: m.err}}, nil
}

func (m *membered) Watch(ctx context.Context, r leadership.WatchRequest) (leadership.Reading, *instance.Watch, error) {
	m.note(ctx, r)
	return leadership.Reading{}, nil, leadership.StoreUnavailable
}

func newMembered(t *testing.T) (*membered, *fixture) {
	t.Helper()
	m := &membered{}
	return m, newFixtureOn(t, httpapi.Config{Service: m, RequestTimeout: time.Minute})
}

func (m *membered) want(t *testing.T, request any) {
	t.Helper()
	if diff := cmp.Diff(request, m.last); diff != "" {
		t.Errorf("the service was asked (-want +got):\n%s", diff)
	}
}

const toPlanner = "/v1/elections/planner"

func TestAnAcknowledgementIsAwaitedForAsLongAsTheCallerSays(t *testing.T) {
	t.Parallel()
	m, w := newMembered(t)
	a := w.do("POST", toPlanner+":awaitAcknowledgement", `{"fencingToken":7,"need":2,"wait":"45s"}`)
	if want := `{"election":"planner","fencingToken":7,"need":2,"acknowledged":false,"complete":false,"follow":[],"missing":["node-2"]}`; strings.TrimSpace(string(a.body)) != want {
		t.Errorf("answered %d %s, want %s", a.status, a.body, want)
	}
	m.want(t, leadership.AcknowledgementRequest{Election: "planner", Token: 7, Need: 2, Wait: 45 * time.Second})
	if m.left <= time.Minute { // the request timeout of the fixture
		t.Errorf("the call of the service may take %v, want the wait in addition to the time of other calls", m.left)
	}
	m.err = &leadership.Error{Code: leadership.TokenStale, Detail: "the newest is 8"}
	a = w.do("POST", toPlanner+":awaitAcknowledgement", `{"fencingToken":7,"need":2}`)
	if p := a.problem(t); a.status != 409 || p.Code != leadership.TokenStale {
		t.Errorf("a stale token is answered %d %s", a.status, a.body)
	}
}

func TestACheckBeforeAWriteSaysSoAloneAndInABatch(t *testing.T) {
	t.Parallel()
	m, w := newMembered(t)
	m.err = &leadership.Error{Code: leadership.ReadOnly, Detail: "1 of 3 members is present, and 2 are needed", RetryAfter: time.Second}
	a := w.do("POST", toPlanner+":checkToken", `{"fencingToken":7,"use":"write"}`)
	if p := a.problem(t); a.status != 409 || p.Code != leadership.ReadOnly || a.header.Get("Retry-After") != "1" {
		t.Errorf("answered %d %s", a.status, a.body)
	}
	m.want(t, leadership.TokenCheck{Election: "planner", Token: 7, Write: true})
	w.do("POST", toPlanner+":checkToken", `{"fencingToken":7,"use":"read"}`)
	m.want(t, leadership.TokenCheck{Election: "planner", Token: 7})
	a = w.do("POST", "/v1/elections:batchCheckTokens", `{"checks":[{"election":"planner","fencingToken":7,"use":"write"},{"election":"scribe","fencingToken":8}]}`)
	if !strings.Contains(string(a.body), `"code":"READ_ONLY"`) {
		t.Errorf("a batch is answered %s", a.body)
	}
	m.want(t, []leadership.TokenCheck{{Election: "planner", Token: 7, Write: true}, {Election: "scribe", Token: 8}})
}

func TestTheReaderOfAStreamCanBeAMember(t *testing.T) {
	t.Parallel()
	m, w := newMembered(t)
	w.do("GET", toPlanner+"/events?member=node-2&after=3", "", "Accept", wire.StreamType)
	m.want(t, leadership.WatchRequest{Election: "planner", Resume: true, After: 3, Member: "node-2"})
	w.do("GET", toPlanner+"/events", "", "Accept", wire.StreamType)
	m.want(t, leadership.WatchRequest{Election: "planner"})
}
