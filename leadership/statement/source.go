package statement

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"regent/leadership"
)

const (
	keysFor     = 5 * time.Minute  // then they are read again
	keysAtMost  = time.Hour        // if that fails
	betweenAsks = 10 * time.Second // even if a statement has an unknown key
	askTimeout  = 5 * time.Second
)

// Source verifies statements with the keys that a server publishes. It reads them when they are
// needed and keeps them for minutes, so that a key which was taken back counts no longer than that.
// Its methods may be called concurrently.
type Source struct {
	url   string
	http  http.Client
	state chan state // capacity 1: whoever has received it may ask
}

type state struct {
	keys        Keys
	read, asked time.Time
	err         error // of the last ask
}

// NewSource returns a source that has asked for nothing yet. The URL is that of the key set: https,
// or http on loopback.
func NewSource(from string) (*Source, error) {
	u, err := url.Parse(from)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())) {
		return nil, fmt.Errorf("statement: keys are read from an https URL, or from this machine, not from %q", from)
	}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s := &Source{from, http.Client{CheckRedirect: refuse, Timeout: askTimeout}, make(chan state, 1)}
	s.state <- state{}
	return s, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Verify is Keys.Verify with the server's keys. It blocks only while they are read.
func (s *Source) Verify(ctx context.Context, statement string, now time.Time, want Want) (c Claims, err error) {
	for _, age := range []time.Duration{keysFor, 0} { // an unknown key may be a new one
		var keys Keys
		if keys, err = s.keys(ctx, now, age); err != nil {
			return c, err
		}
		if c, err = keys.Verify(statement, now, want); !errors.Is(err, ErrUnknownKey) {
			return c, err
		}
	}
	return c, err
}

// keys returns keys that are no older than that, unless the server was asked a moment ago or does
// not answer.
func (s *Source) keys(ctx context.Context, now time.Time, age time.Duration) (Keys, error) {
	var is state
	select {
	case is = <-s.state:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { s.state <- is }()
	if now.Sub(is.read) >= age && now.Sub(is.asked) >= betweenAsks {
		var keys Keys
		is.asked = now
		if keys, is.err = s.ask(); is.err == nil {
			is.keys, is.read = keys, now
		}
	}
	if now.Sub(is.read) >= keysAtMost {
		return nil, fmt.Errorf("statement: %w: there are no keys of %s: %w", leadership.StoreUnavailable, s.url, is.err)
	}
	return is.keys, nil
}

// ask reads the keys. It goes on when the caller leaves, for others that wait.
func (s *Source) ask() (Keys, error) {
	response, err := s.http.Get(s.url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	set, err := io.ReadAll(io.LimitReader(response.Body, maxSet+1))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", response.StatusCode)
	}
	if err != nil {
		return nil, err
	}
	return ParseKeys(set)
}
