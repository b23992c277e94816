package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/httpapi/apitest"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/instance"
	"regent/leadership/service"
	"regent/store/memory"
)

// A Client has the methods of a Service.
var _ instance.Protocol = (*client.Client)(nil)

// api returns the API of the only instance on the store.
func api(t *testing.T, store service.Store) http.Handler {
	t.Helper()
	inst, err := instance.New(instance.Config{Store: store, Alone: true})
	require.NoError(t, err)
	return httpapi.New(httpapi.Config{Service: inst})
}

func clientOf(t *testing.T, url string, transport http.RoundTripper) *client.Client {
	t.Helper()
	return newClient(t, client.Config{Server: url, HTTP: &http.Client{Transport: transport}})
}

func newClient(t *testing.T, config client.Config) *client.Client {
	t.Helper()
	c, err := client.New(config)
	require.NoError(t, err)
	return c
}

func TestInvalidServerAddressIsRefused(t *testing.T) {
	t.Parallel()
	for server, reason := range map[string]string{
		"":                           "begin with http:// or https://",
		"localhost:8080":             "begin with http:// or https://",
		"http://":                    "has no host",
		"http://a b":                 "invalid character",
		"http://user:secret@host":    "must not contain a user or a password",
		"http://host?x=1":            "must not contain ? or #",
		"http://user:pa%ss@host":     "must not contain a user or a password",
		"http+unix:///var/run/x.sck": "begin with http:// or https://",
	} {
		_, err := client.New(client.Config{Server: server})
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("server %q: error %v, want %q", server, err, reason)
			continue
		}
		for _, secret := range []string{"secret", ":pa", "user:"} {
			assert.NotContains(t, err.Error(), secret, "server %q: error %v repeats it", server, err)
		}
	}
}

func TestPathOfTheServerIsAPrefix(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.StripPrefix("/regent", api(t, memory.New(memory.Config{}))))
	t.Cleanup(server.Close)
	_, err := clientOf(t, server.URL+"/regent/", nil).List(t.Context(), leadership.ListRequest{})
	assert.NoError(t, err)
}

func TestNothingIsSentOverPlainHTTPToAnotherMachine(t *testing.T) {
	t.Parallel()
	for _, server := range []string{
		"http://regent.example", "HTTP://regent.example", "http://192.0.2.1:8080", "http://10.0.0.7", "http://[2001:db8::1]:8080", "http://0.0.0.0:8080",
		"http://localhost.example", "http://evil.localhost", "http://127.0.0.1.example", "http://metadata.google.internal",
	} {
		sent := apitest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			t.Errorf("%s was sent", r.URL)
			return nil, errors.New("refused")
		})
		config := client.Config{Server: server, HTTP: &http.Client{Transport: sent}, Credential: func(context.Context) (string, error) {
			t.Error("a token was asked for")
			return "secret", nil
		}}
		if _, err := client.New(config); !errors.Is(err, client.ErrPlainHTTP) || !strings.Contains(err.Error(), "https://") {
			t.Errorf("server %q: %v; want ErrPlainHTTP and what to do", server, err)
		}
		config.Insecure = true
		_, err := client.New(config)
		assert.NoError(t, err, "server %q, Insecure", server)
	}
	for _, server := range []string{"http://127.0.0.1:8080", "http://127.8.9.10", "http://[::1]:8080", "http://[::ffff:127.0.0.1]", "http://LocalHost:80", "https://regent.example/", "http://[::1]:8080/prefix/"} {
		_, err := client.New(client.Config{Server: server})
		assert.NoError(t, err, "server %q", server)
	}
}

// Where the server knows its callers, an order names no actor.
func TestAHaltNeedsNoActor(t *testing.T) {
	t.Parallel()
	service := api(t, memory.New(memory.Config{}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		service.ServeHTTP(w, r.WithContext(leadership.WithActor(r.Context(), "olga")))
	}))
	t.Cleanup(server.Close)
	c := clientOf(t, server.URL, server.Client().Transport)
	for _, order := range []leadership.Order{
		{Kind: leadership.OrderHalt, Election: "jobs.*", For: time.Hour, Reason: "a test"},
		{Kind: leadership.OrderUnhalt, Election: "jobs.*", Reason: "a test"},
	} {
		if _, err := c.Do(t.Context(), order); err != nil {
			t.Errorf("%s: %v", order.Kind, err)
		}
	}
	_, err := c.Do(t.Context(), leadership.Order{Kind: leadership.OrderUnhalt, Election: "../x*", Reason: "a test"})
	if refusal, ok := errors.AsType[*leadership.Error](err); !ok || refusal.Field != "election" {
		t.Errorf("a pattern that is none: %v", err)
	}
}
