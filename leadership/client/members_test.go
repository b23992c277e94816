package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
	"regent/leadership/wire"
)

// memberServer answers the calls of members. It works in a bubble.
type memberServer struct {
	events chan string // messages of the stream
	noNews bool        // it refuses streams

	mu     sync.Mutex
	token  int                // of the answers; guarded by mu
	refuse []http.HandlerFunc // answer the next joins; guarded by mu
	joins  []wire.JoinRequest // guarded by mu
	at     []time.Time        // of the joins; guarded by mu
	leaves int                // guarded by mu
}

func (s *memberServer) answer(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, wire.Events) && s.noNews:
		problem(http.StatusForbidden, "PERMISSION_DENIED")(w, r)
	case strings.HasSuffix(r.URL.Path, wire.Events):
		s.stream(w, r)
	case strings.HasSuffix(r.URL.Path, wire.Join):
		s.join(w, r)
	case strings.HasSuffix(r.URL.Path, wire.Leave):
		s.mu.Lock()
		s.leaves++
		s.mu.Unlock()
		replying(http.StatusOK, "application/json", `{"election":"reports"}`)(w, r)
	default:
		problem(http.StatusNotFound, "NOT_FOUND")(w, r)
	}
}

func (s *memberServer) stream(w http.ResponseWriter, r *http.Request) {
	tell(w)
	for {
		select {
		case text := <-s.events:
			io.WriteString(w, text)
		case <-r.Context().Done():
			return
		}
	}
}

func (s *memberServer) join(w http.ResponseWriter, r *http.Request) {
	var body wire.JoinRequest
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joins, s.at = append(s.joins, body), append(s.at, time.Now())
	if len(s.refuse) > 0 {
		s.refuse[0](w, r)
		s.refuse = s.refuse[1:]
		return
	}
	replying(http.StatusOK, "application/json", leaseOf("reports", "ann", fmt.Sprint(s.token)))(w, r)
}

// seen returns the tokens that the joins said.
func (s *memberServer) seen() (tokens []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.joins {
		text, _ := json.Marshal(j)
		var body struct{ SeenToken int }
		json.Unmarshal(text, &body)
		tokens = append(tokens, fmt.Sprint(body.SeenToken))
	}
	return tokens
}

// acquired is the event of a grant.
func acquired(revision int, leader string, token int) string {
	return fmt.Sprintf("id: %d\ndata: {\"election\":\"reports\",\"revision\":%d,\"type\":\"acquired\",\"at\":\"2027-03-01T12:00:00Z\",\"leaderId\":%q,\"fencingToken\":%d}\n\n", revision, revision, leader, token)
}

// joined runs a member in a bubble until the test ends.
func joined(t *testing.T, s *memberServer, config client.MemberConfig, test func(stop func() error)) {
	synctest.Test(t, func(t *testing.T) {
		s.events = make(chan string)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		c := clientOf(t, "http://localhost", &scriptedServer{acts: []http.HandlerFunc{s.answer}})
		go func() { ended <- c.Member(ctx, "reports", config) }()
		synctest.Wait()
		test(func() error { cancel(); return <-ended })
		cancel()
	})
}

func TestAMemberJoinsAgainEveryThirdOfItsTTLAndLeavesAtTheEnd(t *testing.T) {
	s := &memberServer{token: 7}
	config := client.MemberConfig{ID: "node-2", Role: leadership.RoleWorker, TTL: 30 * time.Second, Note: "shard 3"}
	joined(t, s, config, func(stop func() error) {
		time.Sleep(5 * time.Minute)
		if err := stop(); err != nil || s.leaves != 1 {
			t.Errorf("it ends with %v and %d leaves", err, s.leaves)
		}
		first := s.joins[0]
		if first.CandidateID != "node-2" || first.Role != leadership.RoleWorker || time.Duration(first.TTL) != 30*time.Second || first.Note != "shard 3" {
			t.Errorf("it joins with %+v", first)
		}
		if seen := s.seen(); seen[0] != "0" || seen[1] != "7" || s.at[1].Sub(s.at[0]) > time.Second {
			t.Errorf("it follows %v, at %v; want the token that it was told of, at once", seen, s.at[:2])
		}
		for i := range s.at[2:] {
			if pause := s.at[i+2].Sub(s.at[i+1]); pause > 10*time.Second || pause < 9*time.Second {
				t.Errorf("it joins again after %v", pause)
			}
		}
	})
}

func TestAMemberFollowsANewTokenAtOnce(t *testing.T) {
	s := &memberServer{token: 7}
	var told []string
	config := client.MemberConfig{ID: "node-2", Told: func(leader leadership.CandidateID, token leadership.Token) {
		told = append(told, fmt.Sprintf("%s %d", leader, token))
	}}
	joined(t, s, config, func(stop func() error) {
		s.events <- snapshot("reports", 1)
		synctest.Wait()
		n, began := len(s.seen()), time.Now()
		s.events <- acquired(2, "", 7)
		synctest.Wait() // of two that come together it tells the last
		s.events <- acquired(3, "bob", 8)
		synctest.Wait()
		if seen := s.seen()[n:]; !slices.Equal(seen, []string{"8"}) || time.Since(began) > 0 {
			t.Errorf("after the event it joins with %v", seen)
		}
		stop()
		if want := []string{"ann 7", " 7", "bob 8"}; !slices.Equal(told, want) {
			t.Errorf("it tells %q, want %q", told, want)
		}
	})
}

func TestAMemberFollowsOnlyWhatItSaysIfItIsAsked(t *testing.T) {
	s := &memberServer{token: 7, noNews: true}
	var mu sync.Mutex
	follows := leadership.Token(0)
	config := client.MemberConfig{ID: "node-2", SeenToken: func() leadership.Token { mu.Lock(); defer mu.Unlock(); return follows }}
	joined(t, s, config, func(stop func() error) {
		time.Sleep(time.Minute)
		n := len(s.seen())
		if slices.Contains(s.seen(), "7") || n > 8 {
			t.Errorf("before it follows it joins with %v", s.seen())
		}
		mu.Lock()
		follows = 7
		mu.Unlock()
		time.Sleep(2 * time.Second)
		if !slices.Contains(s.seen(), "7") {
			t.Errorf("once it follows it joins with %v", s.seen())
		}
		stop()
	})
}

func TestAMemberGoesOnUntilAnErrorThatStays(t *testing.T) {
	s := &memberServer{token: 7, refuse: []http.HandlerFunc{
		problem(http.StatusServiceUnavailable, "STORE_UNAVAILABLE"), problem(http.StatusConflict, "LIMIT_EXCEEDED"),
		problem(http.StatusNotFound, "NOT_FOUND"), problem(http.StatusTooManyRequests, "RATE_LIMITED"),
	}}
	joined(t, s, client.MemberConfig{ID: "node-2"}, func(stop func() error) {
		time.Sleep(time.Minute)
		if seen := s.seen(); seen[len(seen)-1] != "7" {
			t.Errorf("after errors that pass it joins with %v", seen)
		}
		s.mu.Lock()
		s.refuse = []http.HandlerFunc{problem(http.StatusForbidden, "PERMISSION_DENIED")}
		s.mu.Unlock()
		time.Sleep(time.Minute)
		n := len(s.seen())
		time.Sleep(time.Minute)
		if err := stop(); !errors.Is(err, wire.PermissionDenied) || len(s.seen()) != n {
			t.Errorf("it ends with %v", err)
		}
	})
	if err := (&scriptedServer{}).client(t).Member(t.Context(), "reports", client.MemberConfig{ID: "x", TTL: time.Second}); !errors.Is(err, leadership.InvalidArgument) {
		t.Errorf("a TTL that is too short: %v", err)
	}
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
		if !slices.Equal(got, want) {
			t.Errorf("asked %t: %q, want %q", asked, got, want)
		}
		if member := s.requests[0].URL.Query().Get("member"); member != "node-1" {
			t.Errorf("the stream is that of member %q", member)
		}
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
		if !strings.HasSuffix(r.URL.Path, wire.AwaitAcknowledgement) {
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
		if got := leader(t, server); got != "" {
			t.Errorf("%s still leads", got)
		}
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
		if err := l.AwaitFollowers(t.Context(), 0); !errors.Is(err, leadership.InvalidArgument) {
			t.Errorf("to await nothing: %v", err)
		}
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
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
		if m, err := server.Client(who).Members(t.Context(), "reports"); err != nil || len(m.Members) != 0 {
			t.Errorf("after they have left: %+v, %v", m, err)
		}
	})
}
