package client_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
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

// renewalCall is a call of :renew or :batchRenew as it was sent, and a part of its answer.
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
			assert.NoError(t, wire.Decode(body, &document))
			for _, e := range document.Renewals {
				c.renewals = append(c.renewals, e.Value)
			}
		} else {
			var document wire.LeaseRequest
			assert.NoError(t, wire.Decode(body, &document))
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
		require.NoError(t, err)
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
		assert.NoError(t, l.Resign(t.Context()))
	}
}

// period is how often the leases of a client are renewed: a little more often than the server says
// to the most hurried of them, which is after 0.3 of the lease.
func period(lease time.Duration) time.Duration { return lease * 295 / 1000 }

// gathered returns a client with twenty leases that are renewed together.
func gathered(t *testing.T, server *clienttest.Server) (*renewalLog, []*client.Lease) {
	t.Helper()
	agent := recordRenewals(t, server, named("ann"))
	leases := leadMany(t, agent.Client, "shard", 20, 0)
	time.Sleep(time.Minute)
	agent.take()
	return agent, leases
}

// requireTogether requires of the next ten periods that all leases are renewed in one call in each.
func (l *renewalLog) requireTogether(t *testing.T, when string) {
	t.Helper()
	l.take()
	time.Sleep(10 * period(30*time.Second))
	if calls := l.take(); len(calls) < 9 || len(calls) > 11 {
		t.Errorf("%s: %d calls in ten periods, want one in each", when, len(calls))
	}
}
