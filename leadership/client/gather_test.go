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
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
	"regent/leadership/wire"
)

// renewalCall is a call of :renew or :batchRenew as it was sent, and what it was told.
type renewalCall struct {
	at       time.Time
	batch    bool
	renewals []wire.Renewal
	renewIn  map[leadership.Election]time.Duration
}

func (c renewalCall) has(e leadership.Election) bool {
	return slices.ContainsFunc(c.renewals, func(r wire.Renewal) bool { return r.Election == e })
}

// trip answers a call, or sends it.
type trip func(c renewalCall, r *http.Request, send func() (*http.Response, error)) (*http.Response, error)

// renewalLog is a client whose renewals are recorded.
type renewalLog struct {
	*client.Client
	mu    sync.Mutex
	calls []*renewalCall // guarded by mu
	act   trip           // nil to send each; guarded by mu
}

func recordRenewals(t *testing.T, server *clienttest.Server, who client.Candidate) *renewalLog {
	l := &renewalLog{}
	l.Client = over(t, server, who, func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		batch := strings.HasSuffix(r.URL.Path, wire.PathBatchRenew)
		if !batch && !strings.HasSuffix(r.URL.Path, wire.Renew) {
			return send()
		}
		c := &renewalCall{at: time.Now(), batch: batch, renewIn: map[leadership.Election]time.Duration{}}
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if batch {
			var document wire.Renewals
			if err := wire.Decode(body, &document); err != nil {
				t.Error(err)
			}
			for _, e := range document.Renewals {
				c.renewals = append(c.renewals, e.Value)
			}
		} else {
			var document wire.LeaseRequest
			if err := wire.Decode(body, &document); err != nil {
				t.Error(err)
			}
			name := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, wire.PathElections+"/"), wire.Renew)
			c.renewals = []wire.Renewal{{Election: leadership.Election(name), LeaseRequest: document}}
		}
		l.mu.Lock()
		l.calls = append(l.calls, c)
		act := l.act
		l.mu.Unlock()
		if act != nil {
			return act(*c, r, send)
		}
		response, err := send()
		if err == nil && response.StatusCode == http.StatusOK {
			c.hear(response)
		}
		return response, err
	})
	return l
}

// hear notes when the leases of the answer are to be renewed next.
func (c *renewalCall) hear(response *http.Response) {
	body := rewind(response)
	var document wire.Results
	if c.batch {
		if err := wire.Unmarshal(body, &document); err != nil {
			panic(err)
		}
	} else {
		document.Results = []wire.Result{{Lease: &wire.Lease{}}}
		if err := wire.Unmarshal(body, document.Results[0].Lease); err != nil {
			panic(err)
		}
	}
	for _, r := range document.Results {
		if r.Lease != nil {
			c.renewIn[r.Lease.Election] = time.Duration(*r.Lease.RenewInMs) * time.Millisecond
		}
	}
}

// rewind reads the body of a reply, which can be read again.
func rewind(response *http.Response) []byte {
	body, _ := io.ReadAll(response.Body)
	replace(response, body)
	return body
}

// replace gives a reply another body.
func replace(response *http.Response, body []byte) {
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}

// take returns the calls since the last take.
func (l *renewalLog) take() (calls []*renewalCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls, l.calls = l.calls, nil
	return calls
}

// answer sets how calls are answered from now on.
func (l *renewalLog) answer(act trip) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.act = act
}

// leadMany leads n elections whose names begin with the prefix, granted one after the other.
func leadMany(t *testing.T, c *client.Client, prefix string, n int, apart time.Duration) (all []*client.Lease) {
	t.Helper()
	for i := range n {
		lease, err := c.TryAcquire(t.Context(), leadership.Election(fmt.Sprintf("%s-%d", prefix, i)))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, lease)
		time.Sleep(apart)
	}
	return all
}

// requireValid requires that each lease still is the first one of its election.
func requireValid(t *testing.T, leases []*client.Lease) {
	t.Helper()
	for _, l := range leases {
		if !l.Valid() || l.Token() != 1 {
			t.Errorf("%s ended: %v", l.Election(), context.Cause(l.Context()))
		}
	}
}

func resignAll(t *testing.T, leases []*client.Lease) {
	t.Helper()
	for _, l := range leases {
		if err := l.Resign(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// period is how often the leases of a client are renewed: a little more often than the server says
// to the most hurried of them, which is after 0.3 of the lease.
func period(lease time.Duration) time.Duration { return lease * 295 / 1000 }

func TestHundredLeasesOfAClientAreRenewedInOneCallPerPeriod(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		agent := recordRenewals(t, server, named("ann"))
		leases := leadMany(t, agent.Client, "shard", 100, 97*time.Millisecond)
		time.Sleep(4 * 10 * time.Second) // so long does it take at most until all go together
		agent.take()
		const periods = 40
		time.Sleep(periods * period(30*time.Second))
		calls := agent.take()
		if len(calls) < periods-1 || len(calls) > periods+1 {
			t.Errorf("%d calls in %d periods", len(calls), periods)
		}
		for _, c := range calls {
			if !c.batch || len(c.renewals) != 100 {
				t.Errorf("a call for %d leases", len(c.renewals))
			}
		}
		requireValid(t, leases)
		resignAll(t, leases)
	})
}

func TestNoLeaseIsRenewedLateNorMoreThanATenthOfItEarly(t *testing.T) {
	const lasting = 15 * time.Minute
	for _, c := range []struct {
		name   string
		leases []time.Duration
	}{
		{"alike", []time.Duration{30 * time.Second}},
		{"a third", []time.Duration{30 * time.Second, 10 * time.Second}},
		{"mixed", []time.Duration{time.Second, 7 * time.Second, 20 * time.Second, 30 * time.Second, 10 * time.Minute}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *clienttest.Server) {
				agent := recordRenewals(t, server, named("ann"))
				var leases []*client.Lease
				last, duration := map[leadership.Election]*renewalCall{}, map[leadership.Election]time.Duration{}
				for i, d := range c.leases {
					who := agent.As(client.Candidate{ID: "ann", LeaseDuration: d})
					for _, l := range leadMany(t, who, fmt.Sprint("kind-", i), 10, 61*time.Millisecond) {
						leases, duration[l.Election()] = append(leases, l), d
					}
				}
				time.Sleep(lasting)
				least := 0 // calls without any gathering of leases that differ
				for _, d := range c.leases {
					least += int(lasting/period(d)) + 1
				}
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
		})
	}
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
		_, err := server.Client(client.Candidate{}).Delete(t.Context(), leadership.DeleteRequest{
			Election: "shard-50", DeleteCommand: leadership.DeleteCommand{IfRevision: leadership.AnyRevision, Force: true},
		})
		if err != nil {
			t.Fatal(err)
		}
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

// document returns a trip that answers batches so, and sends the other calls.
func document(status int, contentType, body string) trip {
	return func(c renewalCall, _ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if !c.batch {
			return send()
		}
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func problemDocument(status int, code string) trip {
	return document(status, wire.ProblemType, fmt.Sprintf(`{"type":"about:blank","title":"No","status":%d,"detail":"no","code":%q}`, status, code))
}

// A batch that fails says nothing about the leases in it.
func TestBatchesThatFailCostNoLease(t *testing.T) {
	for name, act := range map[string]trip{
		"a server without batches":    document(404, "text/html", "<h1>Not here"),
		"no such path":                problemDocument(404, "NOT_FOUND"),
		"no such method":              problemDocument(405, "METHOD_NOT_ALLOWED"),
		"a caller that may not":       problemDocument(403, "PERMISSION_DENIED"),
		"a request that is not known": problemDocument(400, "INVALID_ARGUMENT"),
		"too large":                   problemDocument(413, "PAYLOAD_TOO_LARGE"),
		"too many":                    problemDocument(429, "RATE_LIMITED"),
		"the store is away":           problemDocument(503, "STORE_UNAVAILABLE"),
		"the outcome is unknown":      problemDocument(504, "OUTCOME_UNKNOWN"),
		"a fault":                     problemDocument(500, "INTERNAL"),
		"a lease that is lost":        problemDocument(409, "LEASE_LOST"),
		"an election that is deleted": problemDocument(409, "ELECTION_DELETED"),
		"a front end":                 document(502, "text/html", "<h1>Bad gateway"),
		"a log-in":                    document(200, "text/html", "<h1>Welcome"),
		"no results":                  document(200, wire.ContentType, `{"results":[]}`),
		"not JSON":                    document(200, wire.ContentType, `{"results":[`),
		"the answers of others": func(c renewalCall, _ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			response, err := send()
			if c.batch && err == nil {
				reverse(response)
			}
			return response, err
		},
		"the reply is lost": func(c renewalCall, _ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			response, err := send()
			if c.batch {
				return nil, errLostReply
			}
			return response, err
		},
		"no answer": func(c renewalCall, r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			if c.batch {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return send()
		},
		"one row is slow": func(c renewalCall, r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			if c.batch && c.has("shard-7") {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return send()
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *clienttest.Server) {
				agent := recordRenewals(t, server, named("ann"))
				agent.answer(act)
				leases := leadMany(t, agent.Client, "shard", 8, 100*time.Millisecond)
				time.Sleep(25 * time.Minute)
				requireValid(t, leases)
				batches := 0
				for _, c := range agent.take() {
					if c.batch {
						batches++
					}
				}
				// two in ten minutes, and some before all go together; without pauses it is 169
				if batches == 0 || batches > 30 {
					t.Errorf("%d batches in 25 minutes, though they fail", batches)
				}
				agent.answer(nil)
				time.Sleep(12 * time.Minute)
				agent.take()
				time.Sleep(10 * period(30*time.Second))
				if calls := agent.take(); len(calls) > 11 {
					t.Errorf("%d calls in ten periods after batches have recovered", len(calls))
				}
				requireValid(t, leases)
				resignAll(t, leases)
			})
		})
	}
}

// reverse turns the order of the results in a reply.
func reverse(response *http.Response) {
	var document wire.Results
	if err := wire.Unmarshal(rewind(response), &document); err != nil {
		panic(err)
	}
	slices.Reverse(document.Results)
	body, _ := wire.Marshal(document)
	replace(response, body)
}

func TestAfterABatchHasFailedEachLeaseTriesByItself(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		agent := recordRenewals(t, server, named("ann"))
		leases := leadMany(t, agent.Client, "shard", 20, 0)
		time.Sleep(time.Minute)
		agent.take()
		var once sync.Once
		agent.answer(func(_ renewalCall, _ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			var err error
			if once.Do(func() { err = errLostReply }); err != nil {
				return nil, err
			}
			return send()
		})
		time.Sleep(10 * time.Second)
		calls := agent.take()
		single := map[leadership.Election]int{}
		for _, c := range calls[1:] {
			if !c.batch {
				single[c.renewals[0].Election]++
				if after := c.at.Sub(calls[0].at); after > 100*time.Millisecond {
					t.Errorf("%s was renewed %v after the batch had failed", c.renewals[0].Election, after)
				}
			}
		}
		if !calls[0].batch || len(single) != 20 {
			t.Errorf("%d of 20 leases were renewed by themselves after a batch had failed", len(single))
		}
		time.Sleep(time.Minute)
		agent.take()
		time.Sleep(10 * period(30*time.Second))
		if calls := agent.take(); len(calls) > 11 {
			t.Errorf("%d calls in ten periods: they do not go together again", len(calls))
		}
		requireValid(t, leases)
		resignAll(t, leases)
	})
}

// The store has renewed each lease no earlier than when the batch was sent, and maybe no later.
func TestDeadlinesOfABatchAreCountedFromWhenItWasSent(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		agent := recordRenewals(t, server, named("ann"))
		leases := leadMany(t, agent.Client, "shard", 20, 0)
		time.Sleep(time.Minute)
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

func TestLeaseThatResignsDoesNotWaitForItsBatchNorEndIt(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		agent := recordRenewals(t, server, named("ann"))
		leases := leadMany(t, agent.Client, "shard", 20, 0)
		time.Sleep(time.Minute)
		sent := make(chan struct{})
		agent.take()
		agent.answer(func(c renewalCall, r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			close(sent)
			agent.answer(nil)
			rest(r, 5*time.Second)
			return send()
		})
		<-sent
		began := time.Now()
		resignAll(t, leases[:10])
		if d := time.Since(began); d > 0 {
			t.Errorf("to resign took %v", d)
		}
		time.Sleep(8 * time.Second)
		if calls := agent.take(); len(calls) != 1 {
			t.Errorf("%d calls, want the one batch", len(calls))
		}
		requireValid(t, leases[10:])
		page, err := agent.List(t.Context(), leadership.ListRequest{})
		if err != nil {
			t.Fatal(err)
		}
		held := 0
		for _, l := range page.Leases {
			if l.State == leadership.Held {
				held++
			}
		}
		if held != 10 {
			t.Errorf("%d elections are held, want 10", held)
		}
		resignAll(t, leases[10:])
	})
}

func TestBatchThatNoLeaseWaitsForIsCancelled(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		agent := recordRenewals(t, server, named("ann"))
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				err := agent.Run(ctx, leadership.Election(fmt.Sprint("shard-", i)), func(ctx context.Context, _ *client.Lease) error {
					<-ctx.Done()
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Minute)
		sent, cancelled := make(chan struct{}), make(chan struct{})
		agent.answer(func(_ renewalCall, r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
			close(sent)
			<-r.Context().Done()
			close(cancelled)
			return nil, r.Context().Err()
		})
		<-sent
		began := time.Now()
		cancel()
		<-cancelled
		all.Wait()
		if d := time.Since(began); d > 0 {
			t.Errorf("it took %v", d)
		}
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
		if err != nil {
			t.Fatal(err)
		}
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
	r := leadership.UnlockRequest{Election: e, UnlockCommand: leadership.UnlockCommand{Reason: "test"}}
	_, err := c.Unlock(t.Context(), r)
	var refused *leadership.Error
	if !errors.As(err, &refused) {
		t.Fatal(err)
	}
	r.Acknowledge = regexp.MustCompile(`two leaders may believe until [0-9TZ:.-]+Z`).FindString(refused.Detail)
	if _, err := c.Unlock(t.Context(), r); err != nil {
		t.Fatal(err)
	}
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
