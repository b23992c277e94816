package httpfence_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
	"regent/leadership/fence/httpfence"
)

var (
	_ httpfence.Leader = (*client.Lease)(nil)
	_ httpfence.Regent = (*client.Client)(nil)
)

func TestGateWithARealRegent(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t)
	checks, err := httpfence.NewChecks(httpfence.ChecksConfig{Regent: server.Client(client.Candidate{}), MaxAge: time.Second})
	require.NoError(t, err)
	t.Cleanup(checks.Wait)
	gate, err := httpfence.New(httpfence.Config{Election: "planner", Check: checks, Marks: new(httpfence.Memory)})
	require.NoError(t, err)
	service := httptest.NewServer(gate.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })))
	t.Cleanup(service.Close)
	command := func(send http.RoundTripper, lease *client.Lease) error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, service.URL, nil)
		require.NoError(t, err)
		if send == http.DefaultTransport { // sent without checking the lease
			r.Header.Set(httpfence.ElectionHeader, string(lease.Election()))
			r.Header.Set(httpfence.TokenHeader, "1")
		}
		reply, err := (&http.Client{Transport: send}).Do(r)
		if err != nil {
			return err
		}
		defer reply.Body.Close()
		return httpfence.Refusal(reply)
	}

	first := campaign(t, server, "ann")
	assert.NoError(t, command(&httpfence.Transport{Leader: first}, first), "the leader was")
	require.NoError(t, first.Resign(t.Context()))
	second := campaign(t, server, "bob")
	assert.NoError(t, command(&httpfence.Transport{Leader: second}, second), "the next leader was")
	assert.ErrorIs(t, command(&httpfence.Transport{Leader: first}, first), leadership.LeaseLost, "a leader that has resigned sent a command")
	assert.ErrorIs(t, command(http.DefaultTransport, first), leadership.TokenStale, "a late command of the first leader was not")
	assert.NoError(t, second.Resign(t.Context()))
}

func campaign(t *testing.T, server *clienttest.Server, id leadership.CandidateID) *client.Lease {
	t.Helper()
	l, err := server.Client(client.Candidate{ID: id}).Campaign(t.Context(), "planner")
	require.NoError(t, err)
	return l
}
