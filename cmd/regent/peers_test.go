package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/leadership"
)

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
	require.NoError(t, os.WriteFile(file, []byte("a.b.c\n"), 0o600))
	all, err := peerSettings{urls: map[string]string{"eu": peer.URL}, files: map[string]string{"eu": file}}.peers()
	require.NoError(t, err)
	_, err = all.Check(t.Context(), "eu", leadership.TokenCheck{Election: "orders.eu", Token: 1})
	if got := <-asked; got != "Bearer a.b.c" {
		t.Errorf("asked with %q", got)
	}
	if text := (&cli{}).sentence(err); !strings.Contains(text, "peer eu answers PERMISSION_DENIED") {
		t.Errorf("the error is %q", text)
	}
}
