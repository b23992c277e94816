package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"regent/leadership/boottime"
)

// Config says which server to call, and how.
type Config struct {
	// Server is where it is, such as "http://127.0.0.1:8080"; a path in it comes before those of the API.
	Server string
	// HTTP makes the calls. With nil each has 30 s, and the time that it asks the server to wait; with another client its Timeout is all there
	// is, so that one shorter than an AcquireRequest.Wait cuts the wait. A Watch has no Timeout. Redirects are not followed, whatever
	// it says: a body has a key in it, and belongs to nobody but this server.
	HTTP *http.Client
	// Silence is for how long the connection of a Watch may bring nothing, not even a ping, before another one is made: 45 s if it is zero. A
	// server pings every 15 s.
	Silence time.Duration
	// Token, if there is one, says who calls: it returns the bearer token that goes with each request, and is asked before each. An error of its
	// is a StoreUnavailable of the call. See MetadataToken.
	Token func(context.Context) (string, error)
	// Candidate is who campaigns, for Run, Campaign and TryAcquire.
	Candidate Candidate
	// Log is told, in a line each, when a lease is granted, cannot be renewed, is renewed again, and is over, and why. Nil is slog.Default.
	Log *slog.Logger
	// Clock is what deadlines are counted by: one that nobody sets, that never goes back, and that runs while the machine is suspended. Nil is
	// boottime.Now.  A test in a synctest bubble gives the bubble's time; see package clienttest.
	Clock func() time.Duration
}

// Client calls one server. All methods may be called at the same time.
type Client struct {
	server  string // without a slash at the end
	http    http.Client
	spare   http.RoundTripper // with connections of its own; nil if the caller has chosen those of http
	limit   time.Duration     // of a call, beside the wait that it asks for; 0 for none
	silence time.Duration     // of a stream

	token     func(context.Context) (string, error)
	candidate Candidate
	id        *identity // if the candidate has none
	log       *slog.Logger
	clock     func() time.Duration
}

const (
	defaultLimit   = 30 * time.Second
	defaultSilence = 45 * time.Second
)

// New returns a client. It does not connect; the error is for a server's URL that cannot be one.
func New(c Config) (*Client, error) {
	server, err := parseServer(c.Server)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	client := &Client{
		server: server, limit: defaultLimit, silence: cmp.Or(c.Silence, defaultSilence),
		token: c.Token, candidate: c.Candidate, id: &identity{}, log: cmp.Or(c.Log, slog.Default()), clock: c.Clock,
	}
	if client.clock == nil {
		client.clock = boottime.Now
	}
	if c.HTTP != nil {
		client.http, client.limit = *c.HTTP, 0
	}
	if client.http.Transport == nil {
		client.http.Transport, client.spare = newTransport(), newTransport()
	}
	client.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client, nil
}

// elsewhere returns a client whose calls go over other connections, if there are others.
func (c *Client) elsewhere() *Client {
	other := *c
	if c.spare != nil {
		other.http.Transport = c.spare
	}
	return &other
}

// parseServer repeats nothing of the address in its errors: somebody may have put a password in.
func parseServer(server string) (string, error) {
	if scheme, _, _ := strings.Cut(server, "://"); !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return "", errors.New("a server's address begins with http:// or https://, such as http://127.0.0.1:8080")
	}
	u, err := url.Parse(server)
	var parse *url.Error
	switch {
	case err == nil && u.User != nil, err != nil && strings.Contains(server, "@"):
		return "", errors.New("a server's address must not have a user or a password in it")
	case errors.As(err, &parse):
		return "", fmt.Errorf("a server's address is a URL, and this is none: %w", parse.Err) // parse would repeat it
	case err != nil:
		return "", err
	case u.Hostname() == "":
		return "", errors.New("a server's address names a host, and this one does not")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(server, "#"):
		return "", errors.New("a server's address ends with its path, without ? and #")
	}
	return strings.TrimRight(u.String(), "/"), nil
}
