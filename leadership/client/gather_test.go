package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
	"regent/leadership/wire"
)

func TestNoLeaseIsRenewedLateNorMoreThanATenthOfItEarly(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		const lasting = 15 * time.Minute
		agent := recordRenewals(t, server, named("ann"))
		var leases []*client.Lease
		last, duration := map[leadership.Election]*renewalCall{}, map[leadership.Election]time.Duration{}
		least := 0 // calls without any gathering of leases that differ
		for i, d := range []time.Duration{time.Second, 7 * time.Second, 20 * time.Second, 30 * time.Second, 10 * time.Minute} {
			who := agent.As(client.Candidate{ID: "ann", LeaseDuration: d})
			for _, l := range leadMany(t, who, fmt.Sprint("kind-", i), 10, 61*time.Millisecond) {
				leases, duration[l.Election()] = append(leases, l), d
			}
			least += int(lasting/period(d)) + 1
		}
		time.Sleep(lasting)
		calls := agent.take()
		if len(calls) > least+100 {
			t.Errorf("%d calls, want %d and some until all go together", len(calls), least)
		}
		for _, call := range calls {
			for _, r := range call.renewals {
				e, d := r.Election, duration[r.Election]
				if before := last[e]; before != nil {
					gap, told := call.at.Sub(before.at), before.renewIn[e]
					if gap > told || gap < told-d/10 {
						t.Errorf("%s, a lease of %v, was renewed after %v instead of %v", e, d, gap, told)
					}
				}
				last[e] = call
			}
		}
		requireValid(t, leases)
		resignAll(t, leases)
	})
}

func TestLoneLeaseIsRenewedByItselfAtRandomTimes(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		agent := recordRenewals(t, server, named("ann"))
		l := lead(t, agent.Client)
		time.Sleep(time.Hour)
		l.Resign(t.Context())
		gaps := map[time.Duration]bool{}
		calls := agent.take()
		for i, c := range calls[1:] {
			gap := c.at.Sub(calls[i].at)
			if gaps[gap] = true; c.batch || gap < 8100*time.Millisecond-time.Millisecond || gap > 10*time.Second {
				t.Errorf("a call for %d leases after %v", len(c.renewals), gap)
			}
		}
		if len(gaps) < len(calls)/2 {
			t.Errorf("only %d of %d gaps differ", len(gaps), len(calls))
		}
	})
}

func TestGroupsOfAHundredFillUpAgainWhenLeasesEnd(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		agent := recordRenewals(t, server, named("ann"))
		leases := leadMany(t, agent.Client, "shard", 250, 11*time.Millisecond)
		time.Sleep(time.Minute)
		agent.take()
		periods := func(want int) {
			t.Helper()
			time.Sleep(20 * period(30*time.Second))
			calls := agent.take()
			if len(calls) < want*19 || len(calls) > want*21 {
				t.Errorf("%d calls in 20 periods, want %d in each", len(calls), want)
			}
			for _, c := range calls {
				if len(c.renewals) > 100 {
					t.Errorf("a call for %d leases", len(c.renewals))
				}
			}
		}
		periods(3)
		var kept, ended []*client.Lease
		for i, l := range leases {
			if i%5 < 2 {
				kept = append(kept, l)
			} else {
				ended = append(ended, l)
			}
		}
		resignAll(t, ended)
		time.Sleep(time.Minute)
		agent.take()
		periods(1)
		requireValid(t, kept)
		resignAll(t, kept)
	})
}

func TestOneLostLeaseOfABatchEndsAlone(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		agent := recordRenewals(t, server, named("ann"))
		leases := leadMany(t, agent.Client, "shard", 100, time.Millisecond)
		time.Sleep(time.Minute)
		_, err := server.Client(client.Candidate{}).Do(t.Context(), leadership.Delete{
			Election: "shard-50", Force: true,
		})
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		lost := leases[50]
		if cause := context.Cause(lost.Context()); lost.Valid() || !errors.Is(cause, client.ErrLost) {
			t.Errorf("the lease that was taken away ended because: %v", cause)
		}
		leases = slices.Delete(leases, 50, 51)
		agent.take()
		time.Sleep(10 * period(30*time.Second))
		for _, c := range agent.take() {
			if c.has("shard-50") || len(c.renewals) != 99 {
				t.Errorf("a call for %d leases", len(c.renewals))
			}
		}
		requireValid(t, leases)
		resignAll(t, leases)
	})
}

// The store has renewed each lease no earlier than when the batch was sent, and maybe no later.
func TestDeadlinesOfABatchAreCountedFromWhenItWasSent(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		agent, leases := gathered(t, server)
		clock := server.Config().Clock
		sent, answered := make(chan time.Duration, 1), make(chan struct{})
		agent.answer(func(c renewalCall, _ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			agent.answer(nil)
			if len(c.renewals) != 20 {
				t.Errorf("a call for %d leases", len(c.renewals))
			}
			sent <- clock()
			response, err := send()
			time.Sleep(3 * time.Second)
			close(answered)
			return response, err
		})
		shown := <-sent
		<-answered
		synctest.Wait()
		want := leadership.Deadline(shown, 0, 30*time.Second, time.Second)
		for _, l := range leases {
			if got := l.Deadline(); got != want {
				t.Errorf("%s is believed in until %v, want %v", l.Election(), got, want)
			}
		}
		resignAll(t, leases)
	})
}

func TestAnElectionStandsInABatchOnce(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		agent := recordRenewals(t, server, named("ann"))
		leases := leadMany(t, agent.Client, "shard", 20, 0)
		// renewals that fail keep the client from noticing that its lease was taken away
		agent.answer(func(c renewalCall, _ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			if c.has("shard-3") && c.renewals[0].FencingToken == 1 {
				return nil, errLostReply
			}
			for i, r := range c.renewals {
				for _, other := range c.renewals[:i] {
					if r.Election == other.Election {
						t.Errorf("%s is twice in a batch", r.Election)
					}
				}
			}
			return send()
		})
		unlock(t, server, "shard-3")
		again, err := agent.As(named("bob")).TryAcquire(t.Context(), "shard-3")
		require.NoError(t, err)
		time.Sleep(25 * time.Second)
		if !again.Valid() || !leases[3].Valid() {
			t.Error("the leases are not held both: nothing was tried")
		}
		agent.answer(nil)
		time.Sleep(time.Minute)
		if leases[3].Valid() || !again.Valid() {
			t.Errorf("the lost lease is valid: %v; its successor: %v", leases[3].Valid(), again.Valid())
		}
		leases[3] = again
		resignAll(t, leases)
	})
}

// unlock takes an election from its leader.
func unlock(t *testing.T, server *clienttest.Server, e leadership.Election) {
	t.Helper()
	c := server.Client(client.Candidate{})
	r := leadership.Unlock{Election: e, Reason: "test", Actor: "olga"}
	_, err := c.Do(t.Context(), r)
	var refused *leadership.Error
	if !errors.As(err, &refused) {
		t.Fatal(err)
	}
	r.Acknowledge = regexp.MustCompile(`two leaders may believe until [0-9TZ:.-]+Z`).FindString(refused.Detail)
	_, err = c.Do(t.Context(), r)
	require.NoError(t, err)
}

func TestEachLeaseOfABatchBringsItsOwnTicket(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		agent := recordRenewals(t, server, named("ann"))
		tickets := map[leadership.Election]leadership.Ticket{}
		var mu sync.Mutex
		n := 0
		agent.answer(func(c renewalCall, _ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			for _, r := range c.renewals {
				if r.Ticket != tickets[r.Election] {
					t.Errorf("%s came with the ticket %q, want %q", r.Election, r.Ticket, tickets[r.Election])
				}
			}
			response, err := send()
			if err != nil || !c.batch {
				maps.DeleteFunc(tickets, func(e leadership.Election, _ leadership.Ticket) bool { return c.has(e) })
				return response, err
			}
			var document wire.Results
			if err := wire.Unmarshal(rewind(response), &document); err != nil {
				return nil, err
			}
			for _, r := range document.Results {
				n++
				r.Lease.Ticket = leadership.Ticket(fmt.Sprint("t", n))
				tickets[r.Election] = r.Lease.Ticket
			}
			body, _ := wire.Marshal(document)
			replace(response, body)
			return response, nil
		})
		leases := leadMany(t, agent.Client, "shard", 20, 0)
		time.Sleep(5 * time.Minute)
		requireValid(t, leases)
		resignAll(t, leases)
		mu.Lock()
		defer mu.Unlock()
		if n < 20*20 {
			t.Errorf("%d tickets", n)
		}
	})
}

func TestTheLogSaysOnceWhyThereIsNoStatement(t *testing.T) {
	signed := regexp.MustCompile(`"statement":"[^"]*"`)
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		log, config := logging(server, client.Candidate{ID: "ann", LeaseDuration: 30 * time.Second, Statement: true})
		var away atomic.Bool
		config.HTTP = through(config.HTTP, func(_ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			response, err := send()
			if err != nil {
				return nil, err
			}
			why := `"statementError":"no key"`
			if away.Load() {
				why = `"statementError":"the key is away"`
			}
			body, err := io.ReadAll(response.Body)
			response.Body = io.NopCloser(bytes.NewReader(signed.ReplaceAll(body, []byte(why))))
			response.ContentLength = -1
			return response, err
		})
		agent, err := client.New(config)
		require.NoError(t, err)
		l := lead(t, agent)
		time.Sleep(time.Minute)
		away.Store(true)
		time.Sleep(time.Minute)
		resignAll(t, []*client.Lease{l})
		for _, why := range []string{`reason="no key"`, `reason="the key is away"`} {
			if n := strings.Count(log.String(), why); n != 1 {
				t.Errorf("%s: %d times in the log\n%s", why, n, log)
			}
		}
	})
}

func TestALeaderThatAsksHasANewStatementAfterEachRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		agent := recordRenewals(t, server, client.Candidate{ID: "ann", LeaseDuration: 30 * time.Second, Statement: true})
		leases := leadMany(t, agent.Client, "stated", 2, time.Millisecond)
		before := []string{leases[0].Statement(), leases[1].Statement()}
		time.Sleep(time.Minute)
		for i, l := range leases {
			if now := l.Statement(); before[i] == "" || now == "" || now == before[i] {
				t.Errorf("%s: %q after %q", l.Election(), now, before[i])
			}
		}
		for _, call := range agent.take() {
			if call.batch || !call.renewals[0].Statement {
				t.Errorf("in a batch: %t, %+v", call.batch, call.renewals)
			}
		}
		requireValid(t, leases)
		other := lead(t, server.Client(named("bob")))
		if other.Statement() != "" {
			t.Error("a statement that was not asked for")
		}
		resignAll(t, append(leases, other))
	})
}
