package authz_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/authz"
	"regent/leadership"
	"regent/leadership/wire"
)

// by returns the context of a call by a principal, as authn.Require makes it.
func by(t *testing.T, name string) context.Context {
	who := authn.Principal{Issuer: "https://issuer.test", Subject: name, Email: name + "@test"}
	return leadership.WithActor(authn.With(t.Context(), who), who.String())
}

// stranger has a grant, but not over these elections.
const stranger = accessText + `  - {principals: [stranger@test], roles: [admin], elections: [elsewhere]}`

func TestAStrangerCannotTellWhetherAnElectionExists(t *testing.T) {
	t.Parallel()
	h := guarded(t, stranger)
	if _, err := h.instance.Acquire(t.Context(), leadership.AcquireRequest{Election: "own-1", CandidateID: "ann"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if !strings.Contains(c.path, "{e}") {
			continue
		}
		reply := func(election string) string {
			adapt := strings.NewReplacer("{e}", election, "{c}", "ann", "{k}", leadership.NewKey().Text())
			r := httptest.NewRequest(c.method, adapt.Replace(c.path), strings.NewReader(adapt.Replace(c.body)))
			r.Header.Set("Content-Type", wire.ContentType)
			r.Header.Set("Accept", cmp.Or(c.stream, "*/*"))
			if strings.Contains(c.path, "wait=") {
				r.Header.Set("If-None-Match", `"1"`)
			}
			if c.verb.Row().Conditional {
				r.Header.Set("If-Match", `"1"`)
			}
			r.Header.Set(wire.RequestIDHeader, "one")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r.WithContext(by(t, "stranger")))
			return fmt.Sprint(w.Code, w.Header(), strings.ReplaceAll(w.Body.String(), election, "E"))
		}
		there, missing := reply("own-1"), reply("own-2")
		if there != missing || !strings.Contains(there, "PERMISSION_DENIED") {
			t.Errorf("%s: a stranger sees\n%s of an election that is there, and\n%s of one that is not", c.call, there, missing)
		}
	}
}

func TestAPageTokenIsNoNameThatTheCallerMayNotRead(t *testing.T) {
	t.Parallel()
	h := guarded(t, accessText)
	for _, e := range []leadership.Election{"a", "b", "own-1", "own-2", "own-3", "x", "y"} {
		if _, err := h.instance.Acquire(t.Context(), leadership.AcquireRequest{Election: e, CandidateID: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []int{0, 1, 2, 3, 5} {
		var got []string
		r := leadership.ListRequest{Limit: limit}
		for range 10 {
			page, err := h.service.List(by(t, "observer"), r)
			if err != nil || limit > 0 && len(page.Leases) > limit {
				t.Fatalf("limit %d: %d leases, %v", limit, len(page.Leases), err)
			}
			for _, l := range page.Leases {
				got = append(got, string(l.Election))
			}
			if r.After = page.Next; r.After == "" {
				break
			}
			if !strings.HasPrefix(string(r.After), "own") {
				t.Errorf("limit %d: the page goes on after %q", limit, r.After)
			}
		}
		if want := "own-1 own-2 own-3"; strings.Join(got, " ") != want {
			t.Errorf("limit %d: %q, want %q", limit, got, want)
		}
	}
}

func TestAPrincipalUsesOnlyItsOwnCandidateIDs(t *testing.T) {
	t.Parallel()
	h := guarded(t, `
grants:
  - {principals: [ann@test, "https://issuer.test|bob"], roles: [candidate], elections: ["*"]}
  - {principals: ["*"], roles: [candidate], elections: [free], candidates: ["*"]}
`)
	nameless := authn.With(t.Context(), authn.Principal{Issuer: "https://issuer.test", Subject: "bob"})
	for _, c := range []struct {
		ctx      context.Context
		election leadership.Election
		id       leadership.CandidateID
		may      bool
	}{
		{by(t, "ann"), "a", "ann@test", true},
		{by(t, "ann"), "b", "ann@test:1", true},
		{by(t, "ann"), "c", "ann@test1", false},
		{by(t, "ann"), "d", "ann", false},
		{by(t, "ann"), "e", "bob", false},
		{by(t, "cy"), "f", "cy@test", false},
		{by(t, "cy"), "free", "any-id", true},
		{nameless, "h", "https://issuer.test|bob", false}, // no candidate can be called so, and nothing shorter is its own
		{t.Context(), "i", "ann@test", false},             // not authenticated
	} {
		_, err := h.service.Acquire(c.ctx, leadership.AcquireRequest{Election: c.election, CandidateID: c.id})
		if (err == nil) != c.may {
			t.Errorf("%q as %q: %v", c.election, c.id, err)
		}
	}
}

func TestRefusedAndPrivilegedCallsLeaveARecord(t *testing.T) {
	t.Parallel()
	h := guarded(t, accessText)
	var revision leadership.Revision // of the last change
	for _, c := range []struct{ who, method, path, body string }{
		{"candidate", "POST", "/v1/elections/own:acquire", `{"candidateId":"ann"}`}, // a grant: revision 1
		{"candidate", "POST", "/v1/elections/own:acquire", `{"candidateId":"bob"}`},
		{"operator", "PUT", "/v1/elections/own", `{"leaseDuration":"5s"}`},
		{"operator", "DELETE", "/v1/elections/own", ""},
		{"admin", "DELETE", "/v1/elections/own", ""}, // held
		{"admin", "DELETE", "/v1/elections/own?force=true", ""},
		{"operator", "PUT", "/v1/elections/own", `{}`},
		{"operator", "POST", "/v1/elections/own:ban", `{"candidateId":"ann","for":"1h","reason":"its disk fails"}`},
		{"operator", "POST", "/v1/elections/own:pause", `{"for":"1h","reason":"the sale","actor":"someone else"}`},
		{"operator", "POST", "/v1/elections/own:lift", `{"override":"ban-6","reason":"` + strings.Repeat("ä", 200) + `"}`},
		{"candidate", "POST", "/v1/elections/own:lift", `{"override":"ban-6","reason":"not read"}`},
		{"verifier", "POST", "/v1/elections/own:judge", `{"fencingToken":1,"verdict":"bad","evidence":"page 7"}`},
		{"scheduler", "POST", "/v1/maintenance:tick", ""},
		{"observer", "GET", "/v1/events?prefix=foreign", ""},
		{"candidate", "POST", "/v1/elections:batchRenew", `{"renewals":[{"election":"` + strings.Repeat("x", 1000) + `","candidateId":"a","key":"` + leadership.NewKey().Text() + `","fencingToken":1}]}`},
	} {
		r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		if c.body != "" {
			r.Header.Set("Content-Type", wire.ContentType)
		}
		r.Header.Set(wire.RequestIDHeader, "id-"+c.who)
		r.Header.Set("Accept", "*/*")
		if operators := []string{"PUT", "DELETE"}; slices.Contains(operators, c.method) || strings.Contains(c.body, "reason") || c.who == "operator" || c.who == "verifier" {
			r.Header.Set("If-Match", wire.ETag(revision))
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(by(t, c.who)))
		var l struct{ Revision leadership.Revision }
		if json.Unmarshal(w.Body.Bytes(), &l) == nil && w.Code == http.StatusOK {
			revision = max(revision, l.Revision)
		}
	}
	want := []authz.Record{
		{Principal: "candidate@test", Verb: wire.VerbAcquire, Election: "own", Candidate: "ann", Token: 1, RequestID: "id-candidate"},
		{Principal: "candidate@test", Verb: wire.VerbAcquire, Election: "own", Candidate: "bob", Code: wire.PermissionDenied, RequestID: "id-candidate"},
		{Principal: "operator@test", Verb: wire.VerbConfigure, Election: "own", RequestID: "id-operator"},
		{Principal: "operator@test", Verb: wire.VerbDelete, Election: "own", Code: wire.PermissionDenied, RequestID: "id-operator"},
		{Principal: "admin@test", Verb: wire.VerbDelete, Election: "own", Code: leadership.LeaseHeld, RequestID: "id-admin"},
		{Principal: "admin@test", Verb: wire.VerbDelete, Election: "own", RequestID: "id-admin"},
		{Principal: "operator@test", Verb: wire.VerbConfigure, Election: "own", RequestID: "id-operator"},
		{Principal: "operator@test", Verb: wire.VerbBan, Election: "own", Reason: "its disk fails", RequestID: "id-operator"},
		{Principal: "operator@test", Verb: wire.VerbPause, Election: "own", Reason: "the sale", Code: leadership.InvalidArgument, RequestID: "id-operator"},
		{Principal: "operator@test", Verb: wire.VerbLift, Election: "own", Reason: strings.Repeat("ä", 128), Code: leadership.InvalidArgument, RequestID: "id-operator"},
		{Principal: "candidate@test", Verb: wire.VerbLift, Election: "own", Code: wire.PermissionDenied, RequestID: "id-candidate"},
		{Principal: "verifier@test", Verb: wire.VerbJudge, Election: "own", Reason: "page 7", Code: leadership.TokenStale, RequestID: "id-verifier"},
		{Principal: "scheduler@test", Verb: wire.VerbTick, RequestID: "id-scheduler"},
		{Principal: "observer@test", Verb: wire.VerbWatchAll, Code: wire.PermissionDenied, RequestID: "id-observer"},
		{Principal: "candidate@test", Verb: wire.VerbBatchRenew, Election: leadership.Election(strings.Repeat("x", leadership.MaxReasonBytes)), Code: wire.PermissionDenied, RequestID: "id-candidate", Parts: 1},
	}
	if diff := gocmp.Diff(want, *h.records); diff != "" {
		t.Errorf("the records (-want +got):\n%s", diff)
	}
}

// reasons returns the codes of an explanation.
func reasons(x leadership.Explanation) (all []leadership.Reason) {
	for _, c := range x.Causes {
		all = append(all, c.Code)
	}
	return all
}

func TestAnExplanationSaysFirstThatACandidateHasNoRights(t *testing.T) {
	t.Parallel()
	h := guarded(t, `
grants:
  - {principals: [ann@test], roles: [candidate, observer], elections: [jobs]}
  - {principals: [bob@test], roles: [observer], elections: ["*"]}
  - {principals: [bob@test, "https://issuer.test|eve"], roles: [candidate], elections: [reports]}
  - {principals: [cy@test], roles: [candidate], elections: [jobs], candidates: ["cy-*"]}
  - {principals: ["*"], roles: [candidate], elections: [free]}
`)
	for _, e := range []leadership.Election{"jobs", "reports", "free"} {
		if _, err := h.instance.Acquire(t.Context(), leadership.AcquireRequest{Election: e, CandidateID: "leader"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		who       string
		election  leadership.Election
		candidate leadership.CandidateID
		rights    bool // are among the reasons
	}{
		{"ann", "jobs", "ann@test", false},
		{"ann", "jobs", "ann@test:2", false},
		{"bob", "jobs", "bob@test", true},    // itself
		{"bob", "jobs", "ann@test:2", false}, // another's candidate, which may
		{"bob", "jobs", "cy-1", false},
		{"bob", "jobs", "cy@test", true}, // no grant is for such a candidate
		{"bob", "jobs", "dan@test", true},
		{"bob", "reports", "bob@test", false},
		{"bob", "reports", "dan@test", false}, // perhaps the name of the one that is named by its subject
		{"bob", "free", "dan@test", false},
		{"bob", "free", "bob@test", false},
	} {
		x, err := h.service.Explain(by(t, c.who), leadership.ExplainRequest{Election: c.election, CandidateID: c.candidate})
		require.NoError(t, err)
		all := reasons(x)
		if first := len(all) > 0 && all[0] == leadership.ReasonRights; first != c.rights || slices.Contains(all[min(1, len(all)):], leadership.ReasonRights) {
			t.Errorf("%s asks for %s in %s: %v; want RIGHTS first: %v", c.who, c.candidate, c.election, all, c.rights)
		}
	}
	if _, err := h.service.Explain(by(t, "bob"), leadership.ExplainRequest{Election: "never-seen", CandidateID: "bob@test"}); !errors.Is(err, leadership.NotFound) {
		t.Errorf("an election that was never seen: %v", err)
	}
}

func TestTheActorOfAnOrderIsTheVerifiedCaller(t *testing.T) {
	t.Parallel()
	h := guarded(t, accessText)
	if _, err := h.instance.Acquire(t.Context(), leadership.AcquireRequest{Election: "own", CandidateID: "ann"}); err != nil {
		t.Fatal(err)
	}
	post := func(path, body string) (int, string) {
		r := httptest.NewRequest("POST", path, strings.NewReader(body))
		r.Header.Set("Content-Type", wire.ContentType)
		r.Header.Set("If-Match", `"1"`)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(by(t, "admin")))
		return w.Code, w.Body.String()
	}
	for _, actor := range []string{"eve@test", "admin@test"} {
		status, text := post("/v1/elections/own:ban", `{"candidateId":"ann","for":"1h","reason":"x","actor":"`+actor+`"}`)
		if status != http.StatusBadRequest || !strings.Contains(text, `the actor is the verified caller, \"admin@test\"; leave actor out`) || !strings.Contains(text, `"pointer":"/actor"`) {
			t.Errorf("%s as the actor: %d %s", actor, status, text)
		}
		status, text = post("/v1/elections/own:judge", `{"fencingToken":1,"verdict":"good","evidence":"x","actor":"`+actor+`"}`)
		if status != http.StatusBadRequest || !strings.Contains(text, "leave actor out") {
			t.Errorf("%s as the judge: %d %s", actor, status, text)
		}
	}
	if status, text := post("/v1/elections/own:ban", `{"candidateId":"ann","for":"1h","reason":"x"}`); status != http.StatusOK || !strings.Contains(text, `"actor":"admin@test"`) {
		t.Errorf("without an actor: %d %s", status, text)
	}
}

// lead makes a candidate lead, through the gate, and returns its lease for requests.
func (g gated) lead(t *testing.T, who, election, candidate string) leadership.LeaseRequest {
	t.Helper()
	grant, err := g.service.Acquire(by(t, who), leadership.AcquireRequest{Election: leadership.Election(election), CandidateID: leadership.CandidateID(candidate)})
	require.NoError(t, err)
	return leadership.LeaseRequest{Election: grant.Election, CandidateID: grant.LeaderID, Key: grant.Key, Token: grant.Token}
}

func TestALeaderDelegatesOnlyWhatItMayAcquire(t *testing.T) {
	t.Parallel()
	h := guarded(t, `
grants:
  - {principals: [ann@test], roles: [candidate], elections: [plan, "plan.a*", "wide*"], candidates: [ann]}
  - {principals: [ann@test], roles: [candidate], elections: ["plan.b*"], candidates: [ann-b]}
  - {principals: [ann@test], roles: [observer], elections: ["*"]}
`)
	plan, wide := h.lead(t, "ann", "plan", "ann"), h.lead(t, "ann", "wide", "ann")
	*h.records = nil
	for _, c := range []struct {
		lease leadership.LeaseRequest
		child string
		may   bool
	}{{plan, "a", true}, {plan, "a", true}, {plan, "b", false}, {plan, "c", false}, {wide, "c", true}} {
		_, err := h.service.Delegate(by(t, "ann"), leadership.DelegateRequest{LeaseRequest: c.lease, Child: c.child, Limits: leadership.Limits{Depth: leadership.AsParent, Children: leadership.AsParent}})
		if c.may != (err == nil) || !c.may && !errors.Is(err, wire.PermissionDenied) {
			t.Errorf("%s delegates %q: %v, want it allowed: %v", c.lease.Election, c.child, err, c.may)
		}
		if _, err := h.instance.Get(t.Context(), leadership.Election(string(c.lease.Election)+"."+c.child)); c.may != (err == nil) {
			t.Errorf("%s.%s: %v", c.lease.Election, c.child, err)
		}
	}
	var left []string
	for _, r := range *h.records {
		left = append(left, fmt.Sprintf("%s %s %s", r.Verb, r.Election, r.Code))
	}
	want := []string{"delegate plan ", "delegate plan ", "acquire plan.b PERMISSION_DENIED", "delegate plan PERMISSION_DENIED", "acquire plan.c PERMISSION_DENIED", "delegate plan PERMISSION_DENIED", "delegate wide "}
	if diff := gocmp.Diff(want, left); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestALeaseStandsOnlyOnOneThatTheCallerMayHold(t *testing.T) {
	t.Parallel()
	h := guarded(t, `
grants:
  - {principals: [ann@test], roles: [candidate], elections: ["*"], candidates: [ann]}
  - {principals: [bob@test], roles: [candidate], elections: [global], candidates: ["*"]}
  - {principals: [bob@test], roles: [candidate], elections: [orders.eu], candidates: [bob]}
`)
	lease := h.lead(t, "ann", "orders.eu", "ann")
	acquire := func(who string, wait time.Duration) error {
		_, err := h.service.Acquire(by(t, who), leadership.AcquireRequest{Election: "global", CandidateID: "ann", Wait: wait, Via: leadership.Via{Election: lease.Election, Token: lease.Token}})
		return err
	}
	for _, wait := range []time.Duration{0, time.Second} {
		if err := acquire("bob", wait); !errors.Is(err, wire.PermissionDenied) || !strings.Contains(err.Error(), `bob@test may not call renew on election "orders.eu" as "ann"`) {
			t.Errorf("bob, who may not be ann there: %v", err)
		}
	}
	if err := acquire("ann", time.Second); err != nil {
		t.Errorf("ann: %v", err)
	}
}

func TestATreeLeavesOutWhatTheCallerMayNotRead(t *testing.T) {
	t.Parallel()
	h := guarded(t, `
grants:
  - {principals: [ann@test], roles: [candidate], elections: ["*"], candidates: [ann]}
  - {principals: [bob@test], roles: [observer], elections: [plan, "plan.a*", plan.b.x]}
  - {principals: [cy@test], roles: [verifier], elections: ["plan*"]}
`)
	child := func(parent leadership.LeaseRequest, name string) leadership.LeaseRequest {
		l, err := h.service.Delegate(by(t, "ann"), leadership.DelegateRequest{LeaseRequest: parent, Child: name, Limits: leadership.Limits{Depth: leadership.AsParent, Children: leadership.AsParent}})
		require.NoError(t, err)
		return h.lead(t, "ann", string(l.Election), "ann")
	}
	plan := h.lead(t, "ann", "plan", "ann")
	child(child(plan, "a"), "x")
	child(child(plan, "b"), "x")
	for who, want := range map[string]string{"ann": "plan plan.a plan.a.x plan.b plan.b.x", "bob": "plan plan.a plan.a.x", "cy": ""} {
		tree, err := h.service.Tree(by(t, who), "plan")
		var names []string
		for _, l := range tree.Leases {
			names = append(names, string(l.Election))
		}
		if got := strings.Join(names, " "); got != want || (want == "") != errors.Is(err, wire.PermissionDenied) {
			t.Errorf("%s is shown %q, %v; want %q", who, got, err, want)
		}
	}
}
