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

// MetadataToken returns a Config.Token that asks the metadata server of Google Cloud for an ID token of the service account that this process runs
// as, for the audience: the URL of the Regent service, or a custom audience of it. It asks again when a token is about to expire. It may be
// called by many at once.
func MetadataToken(audience string) func(context.Context) (string, error) {
	return (&metadataTokens{audience: audience, server: thisMetadataServer()}).token
}

// metadataTokens keeps the last token while it is good.
type metadataTokens struct {
	audience string
	server   metadataServer

	mu      sync.Mutex
	last    string    // guarded by mu
	expires time.Time // guarded by mu
	asking  *asking   // what is under way; nil if nothing is; guarded by mu
}

// asking is one question to the metadata server, for all who want to know.
type asking struct {
	done  chan struct{} // closed once the rest is there
	token string
	err   error
}

// tokenMargin is how long before its expiry a token is replaced.
const tokenMargin = 2 * time.Minute

// token returns the last one while it is good, and has it replaced meanwhile if it will not be for long.
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

// look returns the last token, for how long it is good, and who asks for the next one, if that is due.
func (m *metadataTokens) look() (last string, left time.Duration, next *asking) {
	m.mu.Lock()
	defer m.mu.Unlock()
	left = time.Until(m.expires)
	if left <= tokenMargin && m.asking == nil {
		m.asking = &asking{done: make(chan struct{})}
		go m.replace(m.asking)
	}
	return m.last, left, m.asking
}

// replace asks for the next token.
func (m *metadataTokens) replace(a *asking) {
	defer close(a.done)
	ctx, cancel := context.WithTimeout(context.Background(), 5*metadataTimeout)
	defer cancel()
	a.token, a.err = m.ask(ctx)
	var expires time.Time
	if a.err == nil {
		expires, a.err = expiry(a.token)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asking = nil
	if a.err == nil {
		m.last, m.expires = a.token, expires
	}
}

// ask asks for a token. See https://cloud.google.com/run/docs/authenticating/service-to-service.
func (m *metadataTokens) ask(ctx context.Context) (string, error) {
	query := url.Values{"audience": {m.audience}, "format": {"full"}}
	return m.server.get(ctx, "service-accounts/default/identity?"+query.Encode())
}

// expiry reads when a token expires. It is not verified: whoever takes it does that.
func expiry(token string) (time.Time, error) {
	parts := strings.Split(token, ".")
	bad := errors.New("the metadata server's answer is no token")
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
