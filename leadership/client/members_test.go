package client_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
	"regent/leadership/wire"
)

// joins records what members say when they join. It refuses the next joins as refuse says.
type joins struct {
	deaf bool // members hear no news

	mu     sync.Mutex
	refuse []http.HandlerFunc // guarded by mu
	all    []wire.JoinRequest // guarded by mu
	at     []time.Time        // guarded by mu
}

func (l *joins) trip(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
	if l.deaf && strings.HasSuffix(r.URL.Path, wire.Events) {
		return (&scriptedServer{acts: []http.HandlerFunc{problem(http.StatusForbidden, "PERMISSION_DENIED")}}).RoundTrip(r)
	}
	if !strings.HasSuffix(r.URL.Path, wire.Join) {
		return send()
	}
	copied, _ := r.GetBody()
	text, _ := io.ReadAll(copied)
	var body wire.JoinRequest
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all, l.at = append(l.all, body), append(l.at, time.Now())
	if len(l.refuse) == 0 {
		return send()
	}
	refusal := &scriptedServer{acts: l.refuse[:1]}
	l.refuse = l.refuse[1:]
	return refusal.RoundTrip(r)
}

// seen returns the tokens that the joins said.
func (l *joins) seen() (tokens []leadership.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range l.all {
		tokens = append(tokens, *cmp.Or(j.SeenToken, new(leadership.Token)))
	}
	return tokens
}

// joined runs a member of the election that ann leads. stop ends it.
func joined(t *testing.T, config client.MemberConfig, said *joins, test func(t *testing.T, server *clienttest.Server, ann *client.Lease, stop func() error)) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		ann := lead(t, server.Client(named("ann")))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- over(t, server, client.Candidate{}, said.trip).Member(ctx, "reports", config) }()
		test(t, server, ann, func() error { cancel(); return <-ended })
		cancel()
	})
}

func TestAMemberJoinsAgainEveryThirdOfItsTTLAndLeavesAtTheEnd(t *testing.T) {
	config := client.MemberConfig{ID: "node-2", Role: leadership.RoleWorker, TTL: 30 * time.Second, Note: "shard 3"}
	said := &joins{}
	joined(t, config, said, func(t *testing.T, server *clienttest.Server, ann *client.Lease, stop func() error) {
		time.Sleep(5 * time.Minute)
		m, err := server.Client(client.Candidate{}).Members(t.Context(), "reports")
		if err != nil || len(m.Members) != 2 || m.Members[1].ID != "node-2" || m.Members[1].Role != leadership.RoleWorker || m.Members[1].Note != "shard 3" {
			t.Errorf("the members are %+v, %v", m, err)
		}
		assert.NoError(t, stop())
		if m, err := server.Client(client.Candidate{}).Members(t.Context(), "reports"); err != nil || len(m.Members) != 1 {
			t.Errorf("after it has left the members are %+v, %v", m, err)
		}
		if seen := said.seen(); seen[0] != 0 || seen[1] != 1 || said.at[1].Sub(said.at[0]) > time.Second {
			t.Errorf("it follows %v, at %v; want the token that it was told of, at once", seen, said.at[:2])
		}
		for i := range said.at[2:] {
			if pause := said.at[i+2].Sub(said.at[i+1]); pause > 10*time.Second || pause < 9*time.Second {
				t.Errorf("it joins again after %v", pause)
			}
		}
		ann.Resign(t.Context())
	})
}

// A join that is cut off may be carried out after the member has left, which then counts until its
// TTL is over.
func TestAMemberLeavesOnlyWhenItsJoinIsAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		ann := lead(t, server.Client(named("ann")))
		ctx, stop := context.WithCancel(t.Context())
		transport := server.Config().HTTP.Transport
		slow := over(t, server, client.Candidate{}, func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, wire.Join) {
				return send()
			}
			stop()
			arrives := make(chan *http.Response, 1)
			time.AfterFunc(time.Second, func() {
				response, err := transport.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
				assert.NoError(t, err)
				arrives <- response
			})
			select {
			case <-r.Context().Done():
				return nil, r.Context().Err()
			case response := <-arrives:
				return response, nil
			}
		})
		assert.NoError(t, slow.Member(ctx, "reports", client.MemberConfig{ID: "node-2"}))
		time.Sleep(time.Second)
		if m, err := server.Client(client.Candidate{}).Members(t.Context(), "reports"); err != nil || len(m.Members) != 1 {
			t.Errorf("after it has left the members are %+v, %v", m, err)
		}
		ann.Resign(t.Context())
	})
}

func TestAMemberFollowsANewTokenAtOnce(t *testing.T) {
	var told []string
	config := client.MemberConfig{ID: "node-2", Told: func(leader leadership.CandidateID, token leadership.Token) {
		told = append(told, fmt.Sprintf("%s %d", leader, token))
	}}
	said := &joins{}
	joined(t, config, said, func(t *testing.T, server *clienttest.Server, ann *client.Lease, stop func() error) {
		time.Sleep(time.Second)
		n := len(said.seen())
		ann.Resign(t.Context())
		time.Sleep(time.Second)
		bob := lead(t, server.Client(named("bob")))
		time.Sleep(time.Second)
		if seen := said.seen()[n:]; !slices.Equal(seen, []leadership.Token{2}) {
			t.Errorf("after the grant it joins with %v", seen)
		}
		stop()
		if want := []string{"ann 1", " 1", "bob 2"}; !slices.Equal(told, want) {
			t.Errorf("it tells %q, want %q", told, want)
		}
		bob.Resign(t.Context())
	})
}

func TestAMemberFollowsOnlyWhatItSaysIfItIsAsked(t *testing.T) {
	var follows atomic.Int64
	config := client.MemberConfig{ID: "node-2", SeenToken: func() leadership.Token { return leadership.Token(follows.Load()) }}
	said := &joins{deaf: true}
	joined(t, config, said, func(t *testing.T, _ *clienttest.Server, ann *client.Lease, stop func() error) {
		time.Sleep(time.Minute)
		if seen := said.seen(); slices.Contains(seen, 1) || len(seen) > 8 {
			t.Errorf("before it follows it joins with %v", seen)
		}
		follows.Store(1)
		time.Sleep(2 * time.Second)
		if !slices.Contains(said.seen(), 1) {
			t.Errorf("once it follows it joins with %v", said.seen())
		}
		stop()
		ann.Resign(t.Context())
	})
}

func TestAMemberGoesOnUntilAnErrorThatStays(t *testing.T) {
	said := &joins{refuse: []http.HandlerFunc{
		problem(http.StatusServiceUnavailable, "STORE_UNAVAILABLE"), problem(http.StatusConflict, "LIMIT_EXCEEDED"),
		problem(http.StatusNotFound, "NOT_FOUND"), problem(http.StatusTooManyRequests, "RATE_LIMITED"),
	}}
	joined(t, client.MemberConfig{ID: "node-2"}, said, func(t *testing.T, _ *clienttest.Server, ann *client.Lease, stop func() error) {
		time.Sleep(time.Minute)
		if seen := said.seen(); seen[len(seen)-1] != 1 {
			t.Errorf("after errors that pass it joins with %v", seen)
		}
		said.mu.Lock()
		said.refuse = []http.HandlerFunc{problem(http.StatusForbidden, "PERMISSION_DENIED")}
		said.mu.Unlock()
		time.Sleep(time.Minute)
		n := len(said.seen())
		time.Sleep(time.Minute)
		if err := stop(); !errors.Is(err, wire.PermissionDenied) || len(said.seen()) != n {
			t.Errorf("it ends with %v", err)
		}
		ann.Resign(t.Context())
	})
	assert.ErrorIs(t, (&scriptedServer{}).client(t).Member(t.Context(), "reports", client.MemberConfig{ID: "x", TTL: time.Second}), leadership.InvalidArgument, "a TTL that is too short")
}

func TestAnswersAboutAnotherElectionOrTokenAreNotBelieved(t *testing.T) {
	t.Parallel()
	c := answering(t, `{"election":"others","clusterSize":0,"term":7,"status":"healthy","participation":1,"complete":true,"nodes":[],"fencingToken":7,"need":1,"acknowledged":true,"follow":[],"missing":[]}`)
	for name, call := range map[string]func(context.Context, leadership.Election) error{
		"leave": func(ctx context.Context, e leadership.Election) error {
			return c.Leave(ctx, leadership.LeaveRequest{Election: e, CandidateID: "node-2"})
		},
		"members": func(ctx context.Context, e leadership.Election) error { _, err := c.Members(ctx, e); return err },
		"await": func(ctx context.Context, e leadership.Election) error {
			_, err := c.AwaitAcknowledgement(ctx, leadership.AcknowledgementRequest{Election: e, Token: 8, Need: 1})
			return err
		},
	} {
		if err := call(t.Context(), "reports"); !errors.Is(err, leadership.StoreUnavailable) && !errors.Is(err, leadership.OutcomeUnknown) {
			t.Errorf("%s of another election becomes %v", name, err)
		}
		if err := call(t.Context(), "others"); name != "await" && err != nil || name == "await" && err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAWatchTellsOfMembersIfItIsAsked(t *testing.T) {
	t.Parallel()
	const change = "event: member\ndata: {\"id\":\"node-2\",\"role\":\"worker\",\"change\":\"vanished\",\"term\":7}\n\n"
	messages := []string{snapshot("reports", 1), change, event("reports", 2)}
	for _, asked := range []bool{false, true} {
		s := &scriptedServer{acts: []http.HandlerFunc{streaming(messages...)}}
		var got []string
		for n, err := range s.client(t).Watch(t.Context(), client.WatchRequest{Election: "reports", Member: "node-1", Members: asked}) {
			switch {
			case err != nil:
				t.Fatal(err)
			case n.Member != nil:
				got = append(got, fmt.Sprintf("%+v after %s", *n.Member, n.Cursor))
			default:
				got = append(got, wordOf(n))
			}
			if n.Event != nil {
				break
			}
		}
		want := []string{"reports is at 1", "reports 2"}
		if asked {
			want = slices.Insert(want, 1, "{ID:node-2 Role:worker Change:vanished SeenToken:7} after 1")
		}
		assert.Equal(t, want, got, "asked %t", asked)
		assert.Equal(t, "node-1", s.requests[0].URL.Query().Get("member"), "the stream is that of member")
	}
	for _, r := range []client.WatchRequest{{Members: true}, {Member: "a"}, {Election: "reports", Member: "a b"}} {
		if s := watch(t.Context(), (&scriptedServer{}).client(t), r, 1); !errors.Is(s.err, leadership.InvalidArgument) {
			t.Errorf("%+v: %v", r, s.err)
		}
	}
}

// followed answers the questions who follows a token: as many as the function says.
func followed(t *testing.T, server *clienttest.Server, who client.Candidate, follow func(wire.AcknowledgementRequest) int) *client.Client {
	return over(t, server, who, func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if !strings.HasSuffix(r.URL.Path, ":awaitAcknowledgement") {
			return send()
		}
		var body wire.AcknowledgementRequest
		text, _ := io.ReadAll(r.Body)
		if err := wire.Unmarshal(text, &body); err != nil {
			return nil, err
		}
		n := follow(body)
		for end := time.Now().Add(time.Duration(body.Wait)); n < body.Need && time.Now().Before(end) && r.Context().Err() == nil; n = follow(body) {
			rest(r, time.Second)
		}
		answer := fmt.Sprintf(`{"election":"reports","fencingToken":%d,"need":%d,"acknowledged":%t,"complete":true,"follow":[],"missing":[]}`, *body.FencingToken, body.Need, n >= body.Need)
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer))}, nil
	})
}

func TestALeaseThatIsNotFollowedIsGivenBack(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		who := named("ann")
		who.AwaitFollowers = 1
		began := time.Now()
		err := followed(t, server, who, func(wire.AcknowledgementRequest) int { return 0 }).Run(t.Context(), "reports", func(context.Context, *client.Lease) error {
			t.Error("the function was called")
			return nil
		})
		if took := time.Since(began); !errors.Is(err, client.ErrNotFollowed) || took < 30*time.Second || took > 31*time.Second {
			t.Errorf("Run returned %v after %v", err, took)
		}
		assert.Empty(t, leader(t, server), "still leads")
	})
}

func TestALeaseThatIsLostBeforeItIsFollowedEndsTheWait(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		who := named("ann")
		who.AwaitFollowers = 1
		agent := followed(t, server, who, func(wire.AcknowledgementRequest) int { return 0 })
		time.AfterFunc(time.Second, func() { overrule(t.Context(), server) })
		err := agent.Run(t.Context(), "reports", func(context.Context, *client.Lease) error {
			t.Error("the function was called")
			return nil
		})
		if !errors.Is(err, client.ErrLost) || errors.Is(err, client.ErrNotFollowed) {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestAWaitForFollowersEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		agent := followed(t, server, named("ann"), func(wire.AcknowledgementRequest) int { return 0 })
		l := lead(t, agent)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := l.AwaitFollowers(ctx, 1); !errors.Is(err, context.DeadlineExceeded) || !l.Valid() {
			t.Errorf("it ends with %v; valid: %t", err, l.Valid())
		}
		assert.ErrorIs(t, l.AwaitFollowers(t.Context(), 0), leadership.InvalidArgument, "to await nothing")
		l.Resign(t.Context())
	})
}

func TestALeaderIsFollowedByTheMembersThatHaveJoined(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		lead(t, server.Client(named("old"))).Resign(t.Context())
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		for _, id := range []leadership.CandidateID{"node-1", "node-2"} {
			go func() { ended <- server.Client(client.Candidate{}).Member(ctx, "reports", client.MemberConfig{ID: id}) }()
		}
		time.Sleep(time.Second)
		who := named("ann")
		who.AwaitFollowers = 2
		began := time.Now()
		err := server.Client(who).Run(ctx, "reports", func(ctx context.Context, l *client.Lease) error {
			m, err := server.Client(who).Members(ctx, "reports")
			if err != nil || m.Status != leadership.MembersHealthy || len(m.Members) != 3 || m.Participation != 1 {
				t.Errorf("members %+v, %v", m, err)
			}
			return nil
		})
		if took := time.Since(began); err != nil || took > 2*time.Second {
			t.Errorf("Run returned %v after %v; want that members follow at once", err, took)
		}
		stop()
		assert.NoError(t, errors.Join(<-ended, <-ended))
		if m, err := server.Client(who).Members(t.Context(), "reports"); err != nil || len(m.Members) != 0 {
			t.Errorf("after they have left: %+v, %v", m, err)
		}
	})
}
