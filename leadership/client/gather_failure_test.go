package client_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/client/clienttest"
	"regent/leadership/wire"
)

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
		"a server without batches": document(404, "text/html", "<h1>Not here"),
		"the store is away":        problemDocument(503, "STORE_UNAVAILABLE"),
		"a lease that is lost":     problemDocument(409, "LEASE_LOST"),
		"a front end":              document(502, "text/html", "<h1>Bad gateway"),
		"no results":               document(200, wire.ContentType, `{"results":[]}`),
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
				agent.requireTogether(t, "after batches have recovered")
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

func TestLeaseThatResignsDoesNotWaitForItsBatchNorEndIt(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		agent, leases := gathered(t, server)
		sent := make(chan struct{})
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
		require.NoError(t, err)
		held := 0
		for _, l := range page.Leases {
			if l.State == leadership.Held {
				held++
			}
		}
		assert.EqualValues(t, 10, held, "elections are held")
		resignAll(t, leases[10:])
	})
}
