package client_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
	"regent/leadership/wire"
)

// quorate configures the election that lead leads with a quorum of ann, bob and cyd, or none.
func quorate(t *testing.T, server *clienttest.Server, members ...string) {
	t.Helper()
	_, err := server.Client(client.Candidate{}).Do(t.Context(), leadership.Configure{Election: "reports", Config: leadership.Config{
		LeaseDuration: 30 * time.Second,
		Ballot:        leadership.BallotPolicy{Quorum: leadership.QuorumPolicy{Electorate: leadership.NewNames(members...)}},
	}})
	require.NoError(t, err)
}

// come makes a member for five minutes.
func come(t *testing.T, server *clienttest.Server, id leadership.CandidateID) {
	t.Helper()
	_, err := server.Client(client.Candidate{}).Join(t.Context(), leadership.JoinRequest{
		Election: "reports", CandidateID: id, Role: leadership.RoleFollower, TTL: 5 * time.Minute,
	})
	require.NoError(t, err)
}

func leaves(t *testing.T, server *clienttest.Server, id leadership.CandidateID) {
	t.Helper()
	require.NoError(t, server.Client(client.Candidate{}).Leave(t.Context(), leadership.LeaveRequest{Election: "reports", CandidateID: id}))
}

func TestALeaderIsToldThatItMustNotWriteAndThatItMay(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		quorate(t, server, "ann", "bob", "cyd")
		come(t, server, "bob")
		var deaf atomic.Bool // no stream can be had
		heard := &noticeLog{}
		config := server.Config()
		config.Candidate, config.OnNotice = named("ann"), heard.add
		config.HTTP = through(config.HTTP, func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			if deaf.Load() && strings.HasSuffix(r.URL.Path, wire.Events) {
				return nil, errLostReply
			}
			return send()
		})
		l := lead(t, newClient(t, config))
		told := func(what string, within time.Duration, want ...client.NoticeKind) {
			t.Helper()
			time.Sleep(within)
			if got := kinds(heard.take()); !slices.Equal(got, want) {
				t.Errorf("%s: the notices are %q, want %q", what, got, want)
			}
		}
		told("all is well", time.Minute)
		leaves(t, server, "bob")
		told("one has gone", leadership.DefaultGrace)
		told("for longer than the grace time", 1200*time.Millisecond, client.NoticeReadOnly)
		if !l.ReadOnly() || !l.Valid() {
			t.Errorf("read-only is %v, and it leads: %v; want both", l.ReadOnly(), l.Valid())
		}
		server.Cut()
		server.Heal()
		told("the stream was broken meanwhile", 10*time.Second)
		server.Cut()
		server.Heal()
		come(t, server, "cyd")
		told("another comes while the stream is broken", 10*time.Second, client.NoticeWritable)
		assert.False(t, l.ReadOnly(), "it is read-only still")
		leaves(t, server, "cyd")
		told("it goes", leadership.DefaultGrace+1200*time.Millisecond, client.NoticeReadOnly)
		deaf.Store(true)
		server.Cut()
		server.Heal()
		quorate(t, server)
		told("by a renewal, that the policy asks for no quorum any more", 12*time.Second, client.NoticeWritable)
		assert.NoError(t, l.Resign(t.Context()))
	})
}

func TestALeaderMakesNoCallForAQuorumThatIsNotAskedFor(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		var streams atomic.Int64
		count := func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, wire.Events) {
				streams.Add(1)
			}
			return send()
		}
		config := server.Config()
		config.Candidate, config.HTTP = named("ann"), through(config.HTTP, count)
		deaf := newClient(t, config)
		config.OnNotice = func(client.Notice) {}
		heedful := newClient(t, config)
		run := func(what string, c *client.Client, want int64) {
			t.Helper()
			streams.Store(0)
			l := lead(t, c)
			time.Sleep(time.Minute)
			assert.Equal(t, want, streams.Load(), "%s: streams", what)
			require.NoError(t, l.Resign(t.Context()))
		}
		run("without a quorum", heedful, 0)
		quorate(t, server, "ann")
		run("without a function for notices", deaf, 0)
		run("with both", heedful, 1)
	})
}
