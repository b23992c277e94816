package httpapi_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/service"
	"regent/leadership/statement"
	"regent/leadership/wire"
	"regent/store/memory"
)

const (
	asksForStatement   = `{"candidateId":"agent-7","key":"` + key + `","statement":true}`
	renewsForStatement = `{"candidateId":"agent-7","key":"` + key + `","fencingToken":1,"statement":true}`
)

// signing is an API with keys of both kinds, the ECDSA key first.
type signing struct {
	*fixture
	asked int   // signatures
	fails error // the error of a key that is unavailable
}

func newSigning(t *testing.T) *signing {
	t.Helper()
	first, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	next, _, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	s := &signing{}
	sign := func(ctx context.Context, message []byte) ([]byte, error) {
		s.asked++
		if until, ok := ctx.Deadline(); !ok || time.Until(until) > 2*time.Second {
			t.Errorf("a signature may take until %v", until)
		}
		if s.fails != nil {
			return nil, s.fails
		}
		return crypto.SignMessage(first, rand.Reader, message, crypto.SHA256)
	}
	issuer, err := statement.NewIssuer("https://regent.example.com", statement.Key{Public: first.Public(), Sign: sign}, statement.Key{Public: next})
	require.NoError(t, err)
	c := &clock{now: time.Date(2027, 3, 1, 12, 0, 0, 123e6, time.UTC)}
	store := memory.New(memory.Config{Now: c.Now})
	s.fixture = newFixtureOn(t, httpapi.Config{Service: newInstance(t, store, c), Statements: issuer})
	s.service, s.clock = service.New(store), c
	return s
}

func TestALeaderThatAsksGetsAStatement(t *testing.T) {
	t.Parallel()
	w := newSigning(t)
	set := w.do("GET", wire.PathKeySet, "")
	keys, err := statement.ParseKeys(set.body)
	if err != nil || len(keys) != 2 || set.header.Get("Cache-Control") != "public, max-age=300" {
		t.Fatalf("%s, %v, %v", set.body, set.header, err)
	}
	check := func(l wire.Lease, principal string) {
		t.Helper()
		got, err := keys.Verify(l.Statement, w.clock.Now(), statement.Want{Election: "planner", Token: 1})
		want := statement.Claims{
			Issuer: "https://regent.example.com", Leader: "agent-7", Principal: principal, Election: "planner", Token: 1,
			IssuedAt: w.clock.Now().Unix(), Expires: l.LeaseExpiration.Unix(),
		}
		if err != nil || got != want || !got.Until().Equal(w.clock.Now().Truncate(time.Second).Add(30*time.Second)) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
		if _, err := keys.Verify(l.Statement, got.Until(), statement.Want{}); err == nil {
			t.Error("the statement outlives the lease")
		}
	}
	check(w.onPlanner(":acquire", asksForStatement).lease(t), "")
	w.clock.Advance(10 * time.Second)
	request := httptest.NewRequestWithContext(leadership.WithActor(t.Context(), "ann@example.com", "iss|1"), "POST", "/v1/elections/planner:renew", strings.NewReader(renewsForStatement))
	request.Header.Set("Content-Type", wire.ContentType)
	check(w.send(request, renewsForStatement).lease(t), "ann@example.com")
	if w.asked != 2 {
		t.Errorf("%d signatures, want 2", w.asked)
	}
	if l := w.onPlanner(":renew", asLeader).lease(t); l.Statement != "" || l.StatementError != "" || w.asked != 2 {
		t.Errorf("a call that asks for no statement: %q, %q, %d signatures", l.Statement, l.StatementError, w.asked)
	}
}

func TestAStatementIsOfASeat(t *testing.T) {
	t.Parallel()
	w := newSigning(t)
	if a := w.do("PUT", "/v1/elections/planner", `{"policy":{"seats":2}}`); a.status != http.StatusOK {
		t.Fatal(string(a.body))
	}
	l := w.onPlanner(":acquire", asksForStatement).lease(t)
	keys, err := statement.ParseKeys(w.do("GET", wire.PathKeySet, "").body)
	require.NoError(t, err)
	if c, err := keys.Verify(l.Statement, w.clock.Now(), statement.Want{Election: l.Election}); err != nil || c.Of != "planner" || c.Seat != l.Seat || c.Seat == 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

// The last renewals of a term last for less than the duration of the lease.
func TestAStatementEndsWithTheTerm(t *testing.T) {
	t.Parallel()
	w := newSigning(t)
	if a := w.do("PUT", "/v1/elections/planner", `{"policy":{"maxTerm":"40s"}}`); a.status != http.StatusOK {
		t.Fatal(string(a.body))
	}
	end := w.clock.Now().Truncate(time.Second).Add(40 * time.Second)
	w.onPlanner(":acquire", asksForStatement).lease(t)
	w.clock.Advance(20 * time.Second)
	l := w.onPlanner(":renew", renewsForStatement).lease(t)
	keys, err := statement.ParseKeys(w.do("GET", wire.PathKeySet, "").body)
	require.NoError(t, err)
	if c, err := keys.Verify(l.Statement, w.clock.Now(), statement.Want{}); err != nil || !c.Until().Equal(end) {
		t.Errorf("until %v, %v; want %v", c.Until(), err, end)
	}
}

func TestALeaseStandsWhenTheKeyIsAway(t *testing.T) {
	t.Parallel()
	w := newSigning(t)
	w.fails = errors.New("the key is at lunch")
	granted := w.onPlanner(":acquire", asksForStatement).lease(t)
	for _, l := range []wire.Lease{granted, w.onPlanner(":renew", renewsForStatement).lease(t)} {
		if l.State != leadership.Held || l.Statement != "" || l.StatementError == "" || strings.Contains(l.StatementError, "lunch") {
			t.Errorf("%s, %q, %q", l.State, l.Statement, l.StatementError)
		}
	}
	if !strings.Contains(w.log.String(), "the key is at lunch") {
		t.Error("the log does not say why")
	}
}

// A leader must not lose its lease because a server cannot sign.
func TestAServerWithoutAKeyRefusesOnlyNewCandidates(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	p := w.onPlanner(":acquire", `{"candidateId":"agent-7","statement":true}`).wantRefusal(t, leadership.InvalidArgument)
	if len(p.Errors) != 1 || p.Errors[0].Pointer != "/statement" {
		t.Errorf("%+v", p)
	}
	w.do("GET", "/v1/elections/planner", "").wantRefusal(t, leadership.NotFound)
	w.do("GET", wire.PathKeySet, "").wantRefusal(t, leadership.NotFound)
	w.acquire()
	w.clock.Advance(10 * time.Second)
	for verb, body := range map[string]string{":renew": renewsForStatement, ":acquire": asksForStatement} {
		if l := w.onPlanner(verb, body).lease(t); l.StatementError == "" || l.FencingToken != 1 || *l.ExpiresInMs != 30_000 {
			t.Errorf("%s: %q, token %d, %d ms left", verb, l.StatementError, l.FencingToken, *l.ExpiresInMs)
		}
	}
}

func TestOnlyAGrantAndARenewalHaveStatements(t *testing.T) {
	t.Parallel()
	w := newSigning(t)
	w.acquire()
	w.onPlanner(":release", renewsForStatement).wantRefusal(t, leadership.InvalidArgument)
	a := w.do("POST", wire.PathBatchRenew, `{"renewals":[`+strings.Replace(renewsForStatement, "{", `{"election":"planner",`, 1)+`]}`)
	var all wire.Results
	if a.into(t, &all); len(all.Results) != 1 || all.Results[0].Error == nil || all.Results[0].Error.Errors[0].Pointer != "/renewals/0/statement" {
		t.Errorf("%s", a.body)
	}
}
