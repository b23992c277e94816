package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"
)

// MetadataCredential returns a Config.Credential that gets an ID token of the process's service
// account from Google Cloud's metadata server. audience is the URL of the Regent service, or its
// custom audience. A token is replaced before it expires. It may be called concurrently.
func MetadataCredential(audience string) func(context.Context) (string, error) {
	return (&metadataTokens{audience: audience, server: thisMetadataServer()}).token
}

type metadataTokens struct {
	audience string
	server   metadataServer

	mu      sync.Mutex
	last    string     // guarded by mu
	expires time.Time  // guarded by mu
	pending *tokenCall // the call in progress, or nil; guarded by mu
}

// tokenCall is one call of the metadata server, shared by all that wait for it.
type tokenCall struct {
	done  chan struct{} // closed when the result is set
	token string
	err   error
}

// tokenMargin is how long before its expiry a token is replaced.
const tokenMargin = 2 * time.Minute

// token returns the cached token while it is valid, and replaces it in the background shortly
// before it expires.
func (m *metadataTokens) token(ctx context.Context) (string, error) {
	last, left, next := m.look()
	if left > 0 {
		return last, nil
	}
	select {
	case <-next.done:
		return next.token, next.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// look returns the cached token, how long it is valid, and the call for the next one if that is
// due.
func (m *metadataTokens) look() (last string, left time.Duration, next *tokenCall) {
	m.mu.Lock()
	defer m.mu.Unlock()
	left = time.Until(m.expires)
	if left <= tokenMargin && m.pending == nil {
		m.pending = &tokenCall{done: make(chan struct{})}
		go m.replace(m.pending)
	}
	return m.last, left, m.pending
}

// replace gets a token. See https://cloud.google.com/run/docs/authenticating/service-to-service.
func (m *metadataTokens) replace(a *tokenCall) {
	defer close(a.done)
	ctx, cancel := context.WithTimeout(context.Background(), 5*metadataTimeout)
	defer cancel()
	query := url.Values{"audience": {m.audience}, "format": {"full"}}
	a.token, a.err = m.server.get(ctx, "service-accounts/default/identity?"+query.Encode())
	var expires time.Time
	if a.err == nil {
		expires, a.err = expiry(a.token)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending = nil
	if a.err == nil {
		m.last, m.expires = a.token, expires
	}
}

// expiry reads when a token expires. It does not verify the token: its recipient does.
func expiry(token string) (time.Time, error) {
	parts := strings.Split(token, ".")
	bad := errors.New("the metadata server's answer is not a token")
	if len(parts) != 3 {
		return time.Time{}, bad
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, bad
	}
	var claims struct {
		Expires int64 `json:"exp"`
	}
	if err := json.Unmarshal(text, &claims); err != nil || claims.Expires == 0 {
		return time.Time{}, bad
	}
	return time.Unix(claims.Expires, 0), nil
}
