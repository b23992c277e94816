package httpfence_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/fencetest"
	"regent/leadership/fence/httpfence"
)

func wantRefusal(t *testing.T, err error, code leadership.Code) *leadership.Error {
	t.Helper()
	refusal, ok := errors.AsType[*leadership.Error](err)
	if !ok || refusal.Code != code {
		t.Fatalf("error %v, want %s", err, code)
	}
	return refusal
}

type leader struct {
	mark  fence.Mark
	valid bool
}

func (l leader) Election() leadership.Election { return l.mark.Election }
func (l leader) Token() leadership.Token       { return l.mark.Token }
func (l leader) Valid() bool                   { return l.valid }

func mark(token leadership.Token) fence.Mark { return fence.Mark{Election: election, Token: token} }

// command is a request of the planner's leader with the token.
func command(token leadership.Token) *http.Request {
	return commandOf(mark(token), "/")
}

func commandOf(m fence.Mark, path string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, nil)
	r.Header.Set(httpfence.ElectionHeader, string(m.Election))
	r.Header.Set(httpfence.TokenHeader, strconv.FormatInt(int64(m.Token), 10))
	return r
}

// gate wraps a handler that answers with the mark it was called with.
func gate(t *testing.T, c httpfence.Config) http.Handler {
	t.Helper()
	if c.Guarded == nil && c.Election == "" {
		c.Election = election
	}
	g, err := httpfence.New(c)
	require.NoError(t, err)
	return g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m, ok := httpfence.FromContext(r.Context())
		fmt.Fprint(w, m.Election, " ", m.Token, " ", ok)
	}))
}

func send(h http.Handler, r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func wantStatus(t *testing.T, reply *http.Response, want int) {
	t.Helper()
	if reply.StatusCode != want {
		t.Fatalf("status %d, want %d: %v", reply.StatusCode, want, httpfence.Refusal(reply))
	}
}

type checker struct{ err error }

func (c checker) Check(context.Context, fence.Mark) error { return c.err }

// failing are Marks that cannot be reached.
type failing struct{ err error }

func (f failing) Raise(context.Context, string, fence.Mark) error { return f.err }

func TestAGateIsAFence(t *testing.T) {
	t.Parallel()
	fencetest.Run(t, func(testing.TB) fencetest.Place {
		marks, values := new(httpfence.Memory), map[string]int64{}
		return fencetest.Place{
			Write: func(_ context.Context, resource string, w fence.Mark, value int64) error {
				g, err := httpfence.New(httpfence.Config{Marks: marks, Guarded: func(r *http.Request) (string, leadership.Election) { return r.URL.Path, w.Election }})
				if err != nil {
					return err
				}
				r := commandOf(w, "/")
				r.URL.Path = resource
				err = httpfence.Refusal(send(g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { values[resource] = value })), r))
				refused, _ := errors.AsType[*leadership.Error](err)
				for header, field := range map[string]string{httpfence.ElectionHeader: "election", httpfence.TokenHeader: "fencingToken"} {
					if refused != nil && refused.Field == header {
						refused.Field = field
					}
				}
				return err
			},
			Read: func(_ testing.TB, resource string) (fence.Mark, int64) { return marks.Mark(resource), values[resource] },
		}
	})
}

func TestALeaderThatWasOvertakenIsRefusedWithTheNewestToken(t *testing.T) {
	t.Parallel()
	h := gate(t, httpfence.Config{Marks: new(httpfence.Memory)})
	wantStatus(t, send(h, command(33)), http.StatusOK)
	wantStatus(t, send(h, command(34)), http.StatusOK)
	wantStatus(t, send(h, command(34)), http.StatusOK)
	reply := send(h, command(33))
	wantStatus(t, reply, http.StatusConflict)
	assert.Equal(t, "application/problem+json", reply.Header.Get("Content-Type"), "content type")
	var document map[string]any
	require.NoError(t, json.NewDecoder(reply.Body).Decode(&document))
	want := map[string]any{
		"type":         "urn:regent:problem:TOKEN_STALE",
		"title":        "Token stale",
		"status":       409.0,
		"detail":       `token 33 of election "planner" is stale: 34 has written; unless a renewal brings a newer token, stop acting as leader`,
		"code":         "TOKEN_STALE",
		"election":     "planner",
		"fencingToken": 34.0,
	}
	if d := cmp.Diff(want, document); d != "" {
		t.Error(d)
	}
}

func TestResourceMayDependOnTheRequest(t *testing.T) {
	t.Parallel()
	memory := new(httpfence.Memory)
	h := gate(t, httpfence.Config{Marks: memory, Guarded: func(r *http.Request) (string, leadership.Election) {
		shard, ok := strings.CutPrefix(r.URL.Path, "/shards/")
		if !ok {
			return "", ""
		}
		return "shard " + shard, leadership.Election("shard-" + shard[:1])
	}})
	one := fence.Mark{Election: "shard-1", Token: 7}
	wantStatus(t, send(h, commandOf(one, "/shards/1")), http.StatusOK)
	wantStatus(t, send(h, commandOf(one, "/shards/2")), http.StatusBadRequest)
	wantStatus(t, send(h, commandOf(one, "/elsewhere")), http.StatusNotFound)
	wantStatus(t, send(h, commandOf(one, "/shards/"+strings.Repeat("1", 1024))), http.StatusBadRequest)
	wantStatus(t, send(h, commandOf(fence.Mark{Election: "shard-2", Token: 1}, "/shards/2")), http.StatusOK)
	if got := memory.Mark("shard 1"); got != one {
		t.Errorf("the mark is %v, want %v", got, one)
	}
}

func TestATokenThatTheCheckRefusesDoesNotRaiseTheMark(t *testing.T) {
	t.Parallel()
	memory := new(httpfence.Memory)
	never := &leadership.Error{Code: leadership.TokenStale, Detail: "it was never granted"}
	h := gate(t, httpfence.Config{Marks: memory, Check: checker{never}})
	reply := send(h, command(leadership.MaxToken))
	wantStatus(t, reply, http.StatusConflict)
	if got := memory.Mark("planner"); got != (fence.Mark{}) {
		t.Errorf("the mark was raised to %v", got)
	}
	if refusal := wantRefusal(t, httpfence.Refusal(reply), leadership.TokenStale); refusal.Lease != nil || refusal.Detail != never.Detail {
		t.Errorf("the reply says %v of %v", refusal, refusal.Lease)
	}
}

func TestGateThatCannotFindOutAdmitsNothing(t *testing.T) {
	t.Parallel()
	secret := errors.New("dial tcp 10.1.2.3: the password is wrong")
	denied := fmt.Errorf("ask: %w", &leadership.Error{Code: "PERMISSION_DENIED", Detail: secret.Error()})
	for name, c := range map[string]httpfence.Config{
		"marks that fail":      {Marks: failing{secret}},
		"a check that fails":   {Check: checker{secret}, Marks: new(httpfence.Memory)},
		"no permission to ask": {Check: checker{denied}},
		"an unknown outcome":   {Marks: failing{leadership.OutcomeUnknown}},
		"an ended context":     {Marks: failing{context.Canceled}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var refused error
			c.Refused = func(_ *http.Request, err error) { refused = err }
			reply := send(gate(t, c), command(33))
			wantStatus(t, reply, http.StatusServiceUnavailable)
			assert.Equal(t, "1", reply.Header.Get("Retry-After"), "Retry-After")
			refusal := wantRefusal(t, httpfence.Refusal(reply), leadership.StoreUnavailable)
			if strings.Contains(refusal.Detail, "password") || refusal.RetryAfter <= 0 {
				t.Errorf("the reply says %q, and to try again after %v", refusal.Detail, refusal.RetryAfter)
			}
			if refused == nil {
				t.Error("the cause was not reported")
			}
		})
	}
}

func TestFullMemoryForgetsNothingAndRefusesNewResources(t *testing.T) {
	t.Parallel()
	memory := &httpfence.Memory{Resources: 2}
	ctx := t.Context()
	for _, resource := range []string{"a", "b", "a"} {
		require.NoError(t, memory.Raise(ctx, resource, mark(34)))
	}
	assert.ErrorIs(t, memory.Raise(ctx, "c", mark(34)), leadership.StoreUnavailable, "one too many")
	assert.NoError(t, memory.Raise(ctx, "a", mark(35)), "one that is there")
	wantRefusal(t, memory.Raise(ctx, "b", mark(33)), leadership.TokenStale)
	if got := memory.Mark("a"); got != mark(35) {
		t.Errorf("the mark is %v, want %v", got, mark(35))
	}
}

func TestInvalidGateConfigIsRefused(t *testing.T) {
	t.Parallel()
	marks, check := new(httpfence.Memory), checker{}
	guarded := func(*http.Request) (string, leadership.Election) { return "", election }
	for name, c := range map[string]httpfence.Config{
		"nothing to compare with":           {Election: election},
		"no election":                       {Marks: marks},
		"no name of an election":            {Marks: marks, Election: "Planner"},
		"both Election and Guarded are set": {Election: election, Guarded: guarded, Check: check},
		"a resource that is not used":       {Resource: "a", Guarded: guarded, Check: check},
	} {
		if g, err := httpfence.New(c); err == nil {
			t.Errorf("%s: made %v", name, g)
		}
	}
}
