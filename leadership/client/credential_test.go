package client_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/httpapi/apitest"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
	"regent/leadership/wire"
)

func idToken(at time.Time) string {
	return "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, at.Unix())) + ".c2ln"
}

func TestMetadataTokenIsReplacedBeforeItExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked, down := 0, false
		token := client.MetadataCredentialFrom("https://regent.test", apitest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			asked++
			if r.URL.String() != "http://metadata/computeMetadata/v1/instance/service-accounts/default/identity?audience=https%3A%2F%2Fregent.test&format=full" ||
				r.Header.Get("Metadata-Flavor") != "Google" {
				t.Errorf("asked %s with %v", r.URL, r.Header)
			}
			if down {
				return nil, io.EOF
			}
			return metadataReply(http.StatusOK, idToken(time.Now().Add(time.Hour))), nil
		}))
		get := func(want int) string {
			t.Helper()
			text, err := token(t.Context())
			synctest.Wait() // the call in the background
			if err != nil || asked != want {
				t.Fatalf("asked %d times, want %d: %v", asked, want, err)
			}
			return text
		}
		first := get(1)
		time.Sleep(57 * time.Minute)
		if get(1) != first {
			t.Error("another token, although the server was not asked")
		}
		down = true
		time.Sleep(2 * time.Minute)
		if get(2) != first {
			t.Error("the old token is still good, and was not used")
		}
		time.Sleep(time.Minute)
		if text, err := token(t.Context()); err == nil {
			t.Errorf("got %s, which has expired", text)
		}
		down = false
		if get(4) == first {
			t.Error("the old token again")
		}
	})
}

func metadataReply(status int, body string) *http.Response {
	h := http.Header{"Metadata-Flavor": {"Google"}}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

func TestHangingTokenSourceDoesNotCostTheLease(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		var hang atomic.Bool
		held := make(chan struct{})
		config := server.Config()
		config.Candidate, config.Log = named("ann"), slog.New(slog.DiscardHandler)
		config.Credential = func(context.Context) (string, error) { // it ignores its context
			if hang.Load() {
				<-held
			}
			return "token", nil
		}
		agent := newClient(t, config)
		began := time.Now()
		err := agent.Run(t.Context(), "reports", func(ctx context.Context, _ *client.Lease) error {
			hang.Store(true)
			<-ctx.Done()
			return nil
		})
		if !errors.Is(err, client.ErrExpired) || errors.Is(err, client.ErrOverran) || time.Since(began) > 31*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		close(held)
	})
}

func TestInvalidTokenIsRefused(t *testing.T) {
	t.Parallel()
	for _, reply := range []*http.Response{
		metadataReply(http.StatusNotFound, "no such account"),
		metadataReply(http.StatusOK, "e30.e30"),
		metadataReply(http.StatusOK, "e30.!.c2ln"),
		metadataReply(http.StatusOK, "e30.e30.c2ln"),
		// from another server
		{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(idToken(time.Now().Add(time.Hour))))},
	} {
		token := client.MetadataCredentialFrom("a", apitest.RoundTrip(func(*http.Request) (*http.Response, error) { return reply, nil }))
		if text, err := token(t.Context()); err == nil {
			t.Errorf("%q was taken for a token", text)
		}
	}
}

func TestEachRequestCarriesTheTokenAndTheIDOfItsCall(t *testing.T) {
	t.Parallel()
	var broken error
	var sent []string
	c, err := client.New(client.Config{
		Server: "http://localhost",
		HTTP: &http.Client{Transport: apitest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			sent = append(sent, r.Header.Get("Authorization")+" for "+r.Header.Get(wire.RequestIDHeader))
			return nil, io.EOF
		})},
		Credential: func(context.Context) (string, error) { return fmt.Sprintf("token-%d", len(sent)), broken },
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(leadership.WithRequestID(t.Context(), "call-1"))
	c.Get(ctx, "planner")
	c.Acquire(ctx, leadership.AcquireRequest{Election: "planner", CandidateID: "ann"})
	for _, err := range c.Watch(ctx, client.WatchRequest{Election: "planner", Connection: func(error) { cancel() }}) {
		assert.ErrorIs(t, err, context.Canceled)
	}
	assert.Equal(t, "Bearer token-0 for call-1, Bearer token-1 for call-1, Bearer token-2 for call-1", strings.Join(sent, ", "), "sent")
	broken = errors.New("no identity")
	_, err = c.Acquire(t.Context(), leadership.AcquireRequest{Election: "planner", CandidateID: "ann"})
	if !errors.Is(err, leadership.StoreUnavailable) || !errors.Is(err, broken) || len(sent) != 3 {
		t.Errorf("without a token: %v, and %d requests were sent", err, len(sent))
	}
}
