package authz_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/authz"
	"regent/leadership"
	"regent/leadership/wire"
)

func by(t *testing.T, name string) context.Context {
	return authn.With(t.Context(), authn.Principal{Issuer: "https://issuer.test", Subject: name, Email: name + "@test"})
}

// stranger may do something, but nothing with these.
const stranger = policyText + `  - {principals: [stranger@test], roles: [admin], elections: [elsewhere]}`

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
			r.Header.Set("Accept", "*/*")
			if strings.Contains(c.path, "wait=") {
				r.Header.Set("If-None-Match", `"1"`)
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

func TestAListLeavesOutWhatTheCallerMayNotRead(t *testing.T) {
	t.Parallel()
	h := guarded(t, policyText)
	for _, e := range []leadership.Election{"foreign", "own-1", "own-2", "zoo"} {
		if _, err := h.instance.Acquire(t.Context(), leadership.AcquireRequest{Election: e, CandidateID: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, wire.PathElections, nil).WithContext(by(t, "observer")))
	text := w.Body.String()
	if strings.Contains(text, "foreign") || strings.Contains(text, "zoo") || !strings.Contains(text, "own-1") || !strings.Contains(text, "own-2") {
		t.Errorf("the observer of own* is shown %s", text)
	}
}

func TestAPageTokenIsNoNameThatTheCallerMayNotRead(t *testing.T) {
	t.Parallel()
	h := guarded(t, policyText)
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

func TestPartsOfABatchThatTheCallerMayNotMakeAreRefusedAlone(t *testing.T) {
	t.Parallel()
	h := guarded(t, policyText)
	var batch []leadership.LeaseRequest
	for _, e := range []leadership.Election{"foreign-1", "own-1", "foreign-2", "own-2"} {
		g, err := h.instance.Acquire(t.Context(), leadership.AcquireRequest{Election: e, CandidateID: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		batch = append(batch, leadership.LeaseRequest{Election: e, CandidateID: "ann", Key: g.Key, Token: g.Token})
	}
	results, err := h.service.BatchRenew(by(t, "candidate"), batch)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		own := strings.HasPrefix(string(batch[i].Election), "own")
		if own && (r.Err != nil || r.Lease.Election != batch[i].Election) || !own && !errors.Is(r.Err, wire.PermissionDenied) {
			t.Errorf("%s: %v, %v", batch[i].Election, r.Lease.Election, r.Err)
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
	h := guarded(t, policyText)
	for _, c := range []struct{ who, method, path, body string }{
		{"candidate", "POST", "/v1/elections/own:acquire", `{"candidateId":"ann"}`}, // a grant
		{"candidate", "POST", "/v1/elections/own:acquire", `{"candidateId":"bob"}`},
		{"operator", "PUT", "/v1/elections/own", `{"leaseDuration":"5s"}`},
		{"operator", "DELETE", "/v1/elections/own", ""},
		{"admin", "DELETE", "/v1/elections/own", ""}, // held
		{"admin", "DELETE", "/v1/elections/own?force=true", ""},
		{"scheduler", "POST", "/v1/maintenance:tick", ""},
		{"observer", "GET", "/v1/events?prefix=foreign", ""},
	} {
		r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		if c.body != "" {
			r.Header.Set("Content-Type", wire.ContentType)
		}
		r.Header.Set(wire.RequestIDHeader, "id-"+c.who)
		r.Header.Set("Accept", "*/*")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(by(t, c.who)))
		io.Copy(io.Discard, w.Body)
	}
	want := []authz.Record{
		{Principal: "candidate@test", Verb: wire.VerbAcquire, Election: "own", Candidate: "ann", Token: 1, RequestID: "id-candidate"},
		{Principal: "candidate@test", Verb: wire.VerbAcquire, Election: "own", Candidate: "bob", Code: wire.PermissionDenied, RequestID: "id-candidate"},
		{Principal: "operator@test", Verb: wire.VerbConfigure, Election: "own", RequestID: "id-operator"},
		{Principal: "operator@test", Verb: wire.VerbDelete, Election: "own", Code: wire.PermissionDenied, RequestID: "id-operator"},
		{Principal: "admin@test", Verb: wire.VerbDelete, Election: "own", Code: leadership.LeaseHeld, RequestID: "id-admin"},
		{Principal: "admin@test", Verb: wire.VerbDelete, Election: "own", RequestID: "id-admin"},
		{Principal: "scheduler@test", Verb: wire.VerbTick, RequestID: "id-scheduler"},
		{Principal: "observer@test", Verb: wire.VerbWatchAll, Code: wire.PermissionDenied, RequestID: "id-observer"},
	}
	if diff := cmp.Diff(want, *h.records); diff != "" {
		t.Errorf("the records (-want +got):\n%s", diff)
	}
}
