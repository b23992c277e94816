package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
	"regent/leadership/wire"
)

// vote lets the election reports ask for bids.
func vote(t *testing.T, server *clienttest.Server, policy leadership.BallotPolicy) {
	t.Helper()
	_, err := server.Client(client.Candidate{}).Do(t.Context(), leadership.Configure{
		Election: "reports", Config: leadership.Config{Ballot: policy},
	})
	require.NoError(t, err)
}

func byPriority(id leadership.CandidateID, priority int64) client.Candidate {
	return client.Candidate{ID: id, LeaseDuration: 30 * time.Second, Priority: priority}
}

// bodies records the bodies of the acquires of a client, and when they were sent.
type bodies struct {
	mu  sync.Mutex
	all []wire.AcquireRequest // guarded by mu
	at  []time.Time           // guarded by mu
}

func (b *bodies) trip(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, wire.Acquire) {
		copied, _ := r.GetBody()
		text, _ := io.ReadAll(copied)
		var body wire.AcquireRequest
		if err := json.Unmarshal(text, &body); err != nil {
			return nil, err
		}
		b.mu.Lock()
		b.all, b.at = append(b.all, body), append(b.at, time.Now())
		b.mu.Unlock()
	}
	return send()
}

func TestACandidateSaysWhatItIsWorthAndItsNewestLoad(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		holder := lead(t, server.Client(named("ann")))
		var sent bodies
		load := int64(8)
		who := client.Candidate{ID: "bob", Priority: -3, Capabilities: []string{"gpu", "eu"}, Load: func() int64 { load--; return load }, Rounds: 3}
		_, err := over(t, server, who, sent.trip).Campaign(t.Context(), "reports")
		assert.ErrorIs(t, err, leadership.LeaseHeld, "the campaign")
		var loads []int64
		for _, body := range sent.all {
			loads = append(loads, body.Load)
			if body.Priority != -3 || !slices.Equal(body.Capabilities, []string{"eu", "gpu"}) {
				t.Errorf("it says %+v", body)
			}
		}
		if !slices.Equal(loads, []int64{7, 6, 5}) {
			t.Errorf("the loads are %v, want that of each call", loads)
		}
		holder.Resign(t.Context())
	})
}

func TestACandidateThatLacksACapabilityIsToldAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		vote(t, server, leadership.BallotPolicy{Require: "eu gpu"})
		var sent bodies
		who := client.Candidate{ID: "ann", Capabilities: []string{"eu"}}
		began := time.Now()
		_, err := over(t, server, who, sent.trip).Campaign(t.Context(), "reports")
		if !errors.Is(err, leadership.NotEligible) || !strings.Contains(err.Error(), ": gpu;") {
			t.Errorf("the campaign ends with %v, which does not name the missing capability", err)
		}
		if len(sent.all) != 1 || time.Since(began) > time.Second {
			t.Errorf("it took %d calls and %v", len(sent.all), time.Since(began))
		}
		who.Capabilities = append(who.Capabilities, "gpu")
		l, err := server.Client(who).TryAcquire(t.Context(), "reports")
		require.NoError(t, err)
		l.Resign(t.Context())
	})
}

func TestACandidateThatDoesNotWaitAsksAgainWhenItsTurnComesAndNotSooner(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		vote(t, server, leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: 2 * time.Second})
		var good, better bodies
		refused := make(chan error, 1)
		go func() {
			_, err := over(t, server, byPriority("ann", 1), good.trip).TryAcquire(t.Context(), "reports")
			refused <- err
		}()
		time.Sleep(time.Second)
		l, err := over(t, server, byPriority("bob", 2), better.trip).TryAcquire(t.Context(), "reports")
		require.NoError(t, err)
		assert.ErrorIs(t, <-refused, leadership.LeaseHeld, "the other one")
		// ann opens the ballot and asks again after the window; her turn is 200 ms later
		if n := len(better.all); n != 2 || better.at[1].Sub(better.at[0]) < time.Second || better.at[1].Sub(better.at[0]) > 1100*time.Millisecond {
			t.Errorf("the better one asks %d times, at %v", n, better.at)
		}
		if good.at[1].Sub(good.at[0]) < 2*time.Second {
			t.Errorf("the first one asks again after %v", good.at[1].Sub(good.at[0]))
		}
		l.Resign(t.Context())
	})
}

func TestACallerThatCannotAwaitTheBallotIsToldOfIt(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		vote(t, server, leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: 20 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := server.Client(named("ann")).TryAcquire(ctx, "reports")
		assert.ErrorIs(t, err, leadership.LeaseHeld, "it ends with %v, not with the server's refusal", err)
	})
}

func TestALeaderIsToldThatABetterCandidateSucceedsIt(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		vote(t, server, leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Preempt: true})
		agent, heard := noticing(t, server, byPriority("ann", 1))
		l := lead(t, agent)
		next := make(chan *client.Lease)
		go func() { next <- lead(t, server.Client(byPriority("bob", 2))) }()
		select {
		case <-l.Context().Done():
		case <-time.After(time.Hour):
			t.Fatal("the term goes on")
		}
		if got := kinds(heard.take()); !slices.Equal(got, []client.NoticeKind{client.NoticeHandOver}) {
			t.Errorf("it is told %v", got)
		}
		if cause := context.Cause(l.Context()); !errors.As(cause, new(*client.TermError)) || !strings.Contains(cause.Error(), "the lease passes to another candidate") {
			t.Errorf("the cause is %v", cause)
		}
		l.Resign(t.Context())
		(<-next).Resign(t.Context())
	})
}

func TestALeaderGoesOnWhenTheBetterCandidateHasGoneAgain(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		vote(t, server, leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Preempt: true})
		agent, heard := noticing(t, server, byPriority("ann", 1))
		l := lead(t, agent)
		ctx, stop := context.WithTimeout(t.Context(), 12*time.Second) // the leader renews once
		defer stop()
		if _, err := server.Client(byPriority("bob", 2)).Campaign(ctx, "reports"); err == nil {
			t.Error("the better candidate leads at once")
		}
		time.Sleep(time.Minute)
		if got := kinds(heard.take()); !slices.Equal(got, []client.NoticeKind{client.NoticeHandOver, client.NoticeGoesOn}) || !l.Valid() {
			t.Errorf("it is told %v; valid: %t", got, l.Valid())
		}
		l.Resign(t.Context())
	})
}

func TestCksumPriorityIsWhatCksumPrints(t *testing.T) {
	t.Parallel()
	for id, sum := range map[leadership.CandidateID]int64{"123456789": 930766865, "a": 1220704766, "agent-1": 3074249056, "node-2": 1355949154, "": math.MaxUint32} {
		if got := client.CksumPriority(id); got != sum-1<<31 || got < leadership.MinPriority || got > leadership.MaxPriority {
			t.Errorf("the priority of %q is %d, want %d", id, got, sum-1<<31)
		}
	}
}
