package client

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// maxToken bounds what a metadata server may answer; an ID token has about 1 KiB.
const maxToken = 16 << 10

// MetadataToken returns a Config.Token that asks the metadata server of Google Cloud for an ID token of the service account that this process runs
// as, for the audience: the URL of the Regent service, or a custom audience of it. It asks again when a token is about to expire. It may be
// called by many at once.
func MetadataToken(audience string) func(context.Context) (string, error) {
	m := &metadataTokens{audience: audience, transport: &http.Transport{}, host: cmp.Or(os.Getenv("GCE_METADATA_HOST"), "metadata.google.internal")}
	return m.token
}

// metadataTokens keeps the last token while it is good.
type metadataTokens struct {
	audience  string
	host      string
	transport http.RoundTripper

	mu      sync.Mutex
	last    string    // guarded by mu
	expires time.Time // guarded by mu
}

// tokenMargin is how long before its expiry a token is replaced.
const tokenMargin = 2 * time.Minute

func (m *metadataTokens) token(ctx context.Context) (string, error) {
	m.mu.Lock()
	last, expires := m.last, m.expires
	m.mu.Unlock()
	if last != "" && time.Until(expires) > tokenMargin {
		return last, nil
	}
	next, err := m.ask(ctx)
	if err != nil && last != "" && time.Until(expires) > 0 {
		return last, nil
	}
	if err != nil {
		return "", err
	}
	if expires, err = expiry(next); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last, m.expires = next, expires
	return next, nil
}

// ask asks the metadata server. See https://cloud.google.com/run/docs/authenticating/service-to-service.
func (m *metadataTokens) ask(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*metadataTimeout)
	defer cancel()
	query := url.Values{"audience": {m.audience}, "format": {"full"}}
	target := "http://" + m.host + "/computeMetadata/v1/instance/service-accounts/default/identity?" + query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return "", err
	}
	request.Header.Set(metadataFlavor, "Google")
	response, err := m.transport.RoundTrip(request)
	if err != nil {
		return "", fmt.Errorf("the metadata server: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxToken))
	switch {
	case err != nil:
		return "", fmt.Errorf("the metadata server: %w", err)
	case response.StatusCode != http.StatusOK || response.Header.Get(metadataFlavor) != "Google":
		return "", fmt.Errorf("the metadata server answers with HTTP status %d", response.StatusCode)
	}
	return strings.TrimSpace(string(body)), nil
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
