package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
	"regent/store/memory"
)

// startAbove serves an empty store whose candidates may name leases of the peers.
func startAbove(t *testing.T, s peerSettings) []string {
	t.Helper()
	all, err := s.peers()
	if err != nil {
		t.Fatal(err)
	}
	leases := memory.New(memory.Config{})
	server := httptest.NewServer(httpapi.New(httpapi.Config{Service: newTestInstance(t, instance.Config{Store: leases, Journal: leases, Peers: all})}))
	t.Cleanup(server.Close)
	return []string{"REGENT_SERVER=" + server.URL}
}

func TestALeaseMayStandOnOneOfAPeer(t *testing.T) {
	t.Parallel()
	eu, gone := startServer(t, newClock()), httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	urls := map[string]string{"eu": strings.TrimPrefix(eu[0], "REGENT_SERVER="), "us": gone.URL}
	above := startAbove(t, peerSettings{urls: urls})
	ann := []string{"REGENT_CANDIDATE=ann", "REGENT_KEY=" + testKey(1)}
	regent(t, above, "configure orders --policy", `{"leadersOf":"orders."}`).want(t, exitDone)
	regent(t, eu, "configure orders.eu").want(t, exitDone)
	regent(t, append(eu, ann...), "acquire orders.eu --lease 10s").want(t, exitDone)
	above = append(above, ann...)

	if r := regent(t, above, "acquire orders --via eu/orders.eu:2").want(t, exitOther); !strings.Contains(r.err, "does not lead") {
		t.Errorf("a token that was never granted: %q", r.err)
	}
	if r := regent(t, above, "acquire orders --via asia/orders.asia:1").want(t, exitUsage); !strings.Contains(r.err, "serve --peer NAME=URL") {
		t.Errorf("a peer that is none: %q", r.err)
	}
	if r := regent(t, above, "acquire orders --via us/orders.us:1").want(t, exitUnreachable); !strings.Contains(r.err, "peer us does not answer") || strings.Contains(r.err, gone.URL) {
		t.Errorf("a peer that does not answer: %q", r.err)
	}
	var l wire.Lease
	if err := json.Unmarshal([]byte(regent(t, above, "acquire orders --via eu/orders.eu:1 --lease 1m --output json").want(t, exitDone).out), &l); err != nil {
		t.Fatal(err)
	}
	if l.EndsBecause != leadership.EndsParent || l.EndsInMs > 10_000 || l.Via == nil || l.Via.Peer == nil || *l.Via.Peer != "eu" {
		t.Errorf("the lease is %+v; want it to end with the one that it stands on, within 10 s", l)
	}
}

func TestAPeerIsAskedWithAnIdentity(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
		w.Write([]byte(`{"code":"PERMISSION_DENIED","detail":"no","status":403}`))
	}))
	t.Cleanup(peer.Close)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("a.b.c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := peerSettings{urls: map[string]string{"eu": peer.URL}, files: map[string]string{"eu": file}}.peers()
	if err != nil {
		t.Fatal(err)
	}
	_, err = all.Check(t.Context(), "eu", leadership.TokenCheck{Election: "orders.eu", Token: 1})
	if got := <-asked; got != "Bearer a.b.c" {
		t.Errorf("asked with %q", got)
	}
	if text := (&cli{}).sentence(err); !strings.Contains(text, "peer eu answers PERMISSION_DENIED") {
		t.Errorf("the error is %q", text)
	}
}
