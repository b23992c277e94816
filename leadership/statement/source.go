package statement

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"regent/leadership"
)

const (
	keysFor     = 5 * time.Minute        // how long keys are used before they are read again
	keysAtMost  = time.Hour              // how long keys are used if that fails
	betweenAsks = 10 * time.Second       // least time between reads, even if a statement has an unknown key
	askTimeout  = 5 * time.Second        // of a read
	patience    = 500 * time.Millisecond // how long a verifier that has keys waits for a read
)

// ErrNoKeys says that the server has no key set, as one that signs no statements.
var ErrNoKeys = errors.New("the server signs no statements: it has no key set (status 404)")

// Source verifies statements with the keys that a server publishes. It reads them when they are
// needed and keeps them for five minutes, so that a key that was taken back is not accepted for
// much longer. Its methods may be called concurrently.
type Source struct {
	url  string
	http http.Client
	mu   sync.Mutex
	is   state // guarded by mu
}

type state struct {
	keys        Keys
	read, asked time.Time
	err         error           // of the last ask
	asking      <-chan struct{} // closed when the present ask ends; nil if there is none
	soon        <-chan struct{} // closed then or when patience with it ends
}

// NewSource returns a source that has read nothing yet. from is the URL of the key set: https, or
// http on loopback.
func NewSource(from string) (*Source, error) {
	u, err := url.Parse(from)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && !(u.Scheme == "http" && IsLoopback(u.Hostname())) {
		return nil, fmt.Errorf("statement: keys are read from an https URL, or from this machine, not from %q", from)
	}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Source{url: from, http: http.Client{CheckRedirect: refuse, Timeout: askTimeout}}, nil
}

// IsLoopback reports whether only this machine can reach the host. An empty host is every address.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Verify is Keys.Verify with the server's keys. It blocks only while they are read: for half a
// second at most, or until ctx ends, if it has keys that are under an hour old.
func (s *Source) Verify(ctx context.Context, statement string, now time.Time, want Want) (c Claims, err error) {
	if _, err := Keys(nil).Verify(statement, now, want); !errors.Is(err, ErrUnknownKey) { // no key could be right
		return c, err
	}
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

// keys returns keys that are no older than age, unless the server was asked a moment ago or does
// not answer: then they may be older.
func (s *Source) keys(ctx context.Context, now time.Time, age time.Duration) (Keys, error) {
	is := s.refresh(now, age)
	if now.Sub(is.read) >= age && is.asking != nil {
		wait := is.soon
		if now.Sub(is.read) >= keysAtMost {
			wait = is.asking
		}
		select {
		case <-wait:
		case <-ctx.Done():
		}
		s.mu.Lock()
		is = s.is
		s.mu.Unlock()
	}
	if now.Sub(is.read) >= keysAtMost {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("statement: %w: there are no keys of %s: %w", leadership.StoreUnavailable, s.url, is.err)
	}
	return is.keys, nil
}

// refresh starts reading the keys if they are older than age and the server was not asked a moment
// ago. It does not wait; the read continues if the caller leaves, because others may wait for it.
func (s *Source) refresh(now time.Time, age time.Duration) state {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.is.read) < age || s.is.asking != nil || now.Sub(s.is.asked) < betweenAsks {
		return s.is
	}
	asking, end := context.WithCancel(context.Background())
	soon, cancel := context.WithTimeout(asking, patience)
	s.is.asked, s.is.asking, s.is.soon = now, asking.Done(), soon.Done()
	go func() {
		defer end()
		defer cancel()
		keys, err := s.ask()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.is.err, s.is.asking = err, nil; err == nil {
			s.is.keys, s.is.read = keys, now
		}
	}()
	return s.is
}

func (s *Source) ask() (Keys, error) {
	response, err := s.http.Get(s.url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	set, err := io.ReadAll(io.LimitReader(response.Body, maxSet+1))
	switch {
	case err == nil && response.StatusCode == http.StatusNotFound:
		err = ErrNoKeys
	case err == nil && response.StatusCode != http.StatusOK:
		err = fmt.Errorf("status %d", response.StatusCode)
	}
	if err != nil {
		return nil, err
	}
	return ParseKeys(set)
}
