package httpfence_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

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
	if err := command(&httpfence.Transport{Leader: first}, first); err != nil {
		t.Errorf("the leader was refused: %v", err)
	}
	require.NoError(t, first.Resign(t.Context()))
	second := campaign(t, server, "bob")
	if err := command(&httpfence.Transport{Leader: second}, second); err != nil {
		t.Errorf("the next leader was refused: %v", err)
	}
	if err := command(&httpfence.Transport{Leader: first}, first); !errors.Is(err, leadership.LeaseLost) {
		t.Errorf("a leader that has resigned sent a command: %v", err)
	}
	if err := command(http.DefaultTransport, first); !errors.Is(err, leadership.TokenStale) {
		t.Errorf("a late command of the first leader was not refused: %v", err)
	}
	if err := second.Resign(t.Context()); err != nil {
		t.Error(err)
	}
}

func campaign(t *testing.T, server *clienttest.Server, id leadership.CandidateID) *client.Lease {
	t.Helper()
	l, err := server.Client(client.Candidate{ID: id}).Campaign(t.Context(), "planner")
	require.NoError(t, err)
	return l
}
