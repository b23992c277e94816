package authn_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn"
	"regent/leadership"
	"regent/leadership/wire"
)

// knows is an authenticator with a constant result.
type knows struct {
	authn.Principal
	err error
}

func (k knows) Authenticate(*http.Request) (authn.Principal, error) { return k.Principal, k.err }

func TestKnownCallerPassesWithItsPrincipalAsTheActor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		authenticator authn.Authenticator
		want          authn.Principal
		actor         string
	}{
		{knows{Principal: authn.Principal{Issuer: "i", Subject: "s", Email: ann}}, authn.Principal{Issuer: "i", Subject: "s", Email: ann}, ann},
		{knows{Principal: authn.Principal{Issuer: "i", Subject: "s"}}, authn.Principal{Issuer: "i", Subject: "s"}, "i|s"},
		{authn.None{}, authn.Principal{}, ""},
	} {
		called := false
		h := authn.Require(c.authenticator, func(*http.Request, error) { t.Error("a refusal") })(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p, ok := authn.From(r.Context())
			if called = true; !ok || p != c.want || leadership.Actor(r.Context()) != c.actor {
				t.Errorf("%v, %t, and the actor %q; want %v and %q", p, ok, leadership.Actor(r.Context()), c.want, c.actor)
			}
			w.WriteHeader(http.StatusTeapot)
		}))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request())
		if !called || w.Code != http.StatusTeapot {
			t.Errorf("called %t, status %d", called, w.Code)
		}
	}
}

func TestUnknownCallerIsToldWhatToDo(t *testing.T) {
	t.Parallel()
	refusal := &leadership.Error{Code: wire.Unauthenticated, Detail: "the token has expired; get a new one"}
	down := &leadership.Error{Code: leadership.StoreUnavailable, Detail: "try again", RetryAfter: 1500 * time.Millisecond}
	for _, c := range []struct {
		name      string
		err       error
		request   *http.Request
		status    int
		challenge string
		after     string
	}{
		{"without a token", refusal, request(), 401, `Bearer realm="regent"`, ""},
		{"with one", refusal, request("Authorization", "Bearer x"), 401, `Bearer realm="regent", error="invalid_token"`, ""},
		{"with one for Cloud Run", refusal, request("X-Serverless-Authorization", "Bearer x"), 401, `Bearer realm="regent", error="invalid_token"`, ""},
		{"without keys", down, request("Authorization", "Bearer x"), 503, "", "2"},
		{"by a fault", io.ErrUnexpectedEOF, request("Authorization", "Bearer x"), 500, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.request.Header.Set(wire.RequestIDHeader, "id-7")
			var told error
			var id string
			refused := func(r *http.Request, err error) { told, id = err, leadership.RequestID(r.Context()) }
			next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("let through") })
			w := httptest.NewRecorder()
			authn.Require(knows{err: c.err}, refused)(next).ServeHTTP(w, c.request)

			want := wire.NewProblem(c.err)
			want.RequestID = "id-7"
			var got wire.Problem
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
			if diff := cmp.Diff(want, got); diff != "" || w.Code != c.status {
				t.Errorf("status %d, want %d (-want +got):\n%s", w.Code, c.status, diff)
			}
			header := map[string]string{}
			for name := range w.Header() {
				header[name] = w.Header().Get(name)
			}
			wantHeader := map[string]string{"Content-Type": wire.ProblemType, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", wire.RequestIDHeader: "id-7"}
			if c.challenge != "" {
				wantHeader["Www-Authenticate"] = c.challenge
			}
			if c.after != "" {
				wantHeader["Retry-After"] = c.after
			}
			if diff := cmp.Diff(wantHeader, header); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
			if told != c.err || id != "id-7" {
				t.Errorf("the hook was told of %v in request %q", told, id)
			}
		})
	}
}

func TestRefusalHasAFreshIDIfTheCallersIsInvalid(t *testing.T) {
	t.Parallel()
	for _, ids := range [][]string{nil, {""}, {"a b"}, {"a", "b"}} {
		r := request()
		r.Header[wire.RequestIDHeader] = ids
		w := httptest.NewRecorder()
		authn.Require(knows{err: wire.Unauthenticated}, nil)(http.NotFoundHandler()).ServeHTTP(w, r)
		if id := w.Header().Get(wire.RequestIDHeader); w.Code != http.StatusUnauthorized || len(id) < 20 {
			t.Errorf("%q: status %d, id %q", ids, w.Code, id)
		}
	}
}

func TestAPrincipalHasOneForm(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]authn.Principal{
		"anonymous":             {},
		"ann@agents.test":       {Issuer: "https://issuer.test", Subject: "7", Email: ann},
		"https://issuer.test|7": {Issuer: "https://issuer.test", Subject: "7"},
	} {
		if got := p.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if p, ok := authn.From(t.Context()); ok || p != (authn.Principal{}) {
		t.Errorf("a context without a principal has %v", p)
	}
}
