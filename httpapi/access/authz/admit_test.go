package authz_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"regent/leadership/wire"
)

// body counts how often it is read.
type body struct {
	io.Reader
	reads int
}

func (b *body) Read(p []byte) (int, error) {
	b.reads++
	return b.Reader.Read(p)
}

func TestABodyOfACallerThatMayNotMakeTheCallIsNotRead(t *testing.T) {
	t.Parallel()
	h := guarded(t, accessText)
	malformed := `{"renewals":[` + strings.Repeat("{},", 80_000)
	for _, c := range []struct {
		who, method, path string
		status            int
		read              bool
	}{
		{"nobody", "POST", "/v1/elections/own:acquire", http.StatusForbidden, false},
		{"nobody", "POST", "/v1/elections:batchRenew", http.StatusForbidden, false},
		{"nobody", "PUT", "/v1/elections/own", http.StatusForbidden, false},
		{"observer", "POST", "/v1/elections/own:acquire", http.StatusForbidden, false},
		{"observer", "POST", "/v1/elections:batchRenew", http.StatusForbidden, false},
		{"candidate", "POST", "/v1/elections/foreign:acquire", http.StatusForbidden, false},
		{"candidate", "PUT", "/v1/elections/own", http.StatusForbidden, false},
		{"candidate", "POST", "/v1/elections:batchRenew", http.StatusBadRequest, true},
		{"candidate", "POST", "/v1/elections/own:acquire", http.StatusRequestEntityTooLarge, true},
	} {
		*h.records = nil
		sent := &body{Reader: strings.NewReader(malformed)}
		r := httptest.NewRequestWithContext(by(t, c.who), c.method, c.path, sent)
		r.ContentLength = int64(len(malformed))
		if !strings.Contains(c.path, "batch") {
			r.ContentLength = -1 // or it is refused as too large, unread
		}
		r.Header.Set("Content-Type", wire.ContentType)
		r.Header.Set(wire.RequestIDHeader, "one")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status || (sent.reads > 0) != c.read {
			t.Errorf("%s %s as %s: status %d after %d reads; want %d, and the body read: %t: %s", c.method, c.path, c.who, w.Code, sent.reads, c.status, c.read, w.Body)
		}
		if c.status != http.StatusForbidden {
			continue
		}
		if n := len(*h.records); n != 1 || (*h.records)[0].Code != wire.PermissionDenied || (*h.records)[0].Principal != c.who+"@test" {
			t.Errorf("%s %s: the audit has %+v, want one refusal", c.method, c.path, *h.records)
		}
	}
}
