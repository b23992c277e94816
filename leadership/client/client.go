package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"regent/leadership/boottime"
	"regent/leadership/wire"
)

// Config says which server to call, and how.
type Config struct {
	// Server is its URL, such as "https://regent.example.com". A path in it is a prefix of the
	// API's paths. http:// is for this machine only: an IP address of loopback, or localhost.
	Server string
	// Insecure allows http:// to other machines. Keys and tokens can then be read, and used, on the
	// way. Right only where something else encrypts the connection, such as a tunnel.
	Insecure bool
	// HTTP makes the calls. If it is nil, each call may take 30 s in addition to the wait that it
	// asks for. If it is set, its Timeout is the only limit, and one shorter than an
	// AcquireRequest.Wait cuts the wait. A Watch has no timeout. Redirects are never followed: a
	// request contains a key, which is for this server only.
	HTTP *http.Client
	// Silence is how long the connection of a Watch may bring nothing, not even a ping, before it
	// is replaced; 0 for 45 s. A server pings every 15 s.
	Silence time.Duration
	// Credential, if set, returns the bearer token that identifies the caller, such as an ID token.
	// It is called before each request. If it fails, the call fails with StoreUnavailable. See
	// MetadataCredential.
	Credential func(context.Context) (string, error)
	// Candidate is the candidate of Run, Campaign and TryAcquire.
	Candidate Candidate
	// Log gets one line when a lease is granted, cannot be renewed, is renewed again, and ends,
	// with the reason. Nil for slog.Default.
	Log *slog.Logger
	// OnNotice, if set, is called when the grant or a renewal brings a change of the leader's term:
	// once for each change, in order and one at a time for each lease, but not from the goroutine
	// that renews. If it blocks, it delays further notices and no renewal. It may be called after
	// the lease is over. If it is set, a leader also watches its election, with one stream for each
	// lease, if the policy asks for a quorum (NoticeReadOnly) or Candidate.HearProposals is set.
	OnNotice func(Notice)
	// OnSuccession, if set, is called when the present leader is to hand over to a candidate that
	// waits in Run or Campaign: it loads what the new leader needs. Once it returns nil, the
	// candidate says that it is ready; the leader then stops, and the lease passes to the
	// candidate. After an error the candidate waits in line as before. Without OnSuccession the
	// candidate is ready at once. ctx ends when the candidate is no longer to take over, or leads
	// for another reason. OnSuccession must then return within a second: after that the campaign
	// logs a warning and returns while OnSuccession still runs, even beside the leader's function.
	OnSuccession func(context.Context, Succession) error
	// OnPromotion, if set, prepares a new leader if the election's policy requires that
	// (promotion): Run and Campaign call it after the grant. Once it returns nil, the leader says
	// that it serves, so that writes are accepted, and Run calls its function. After an error the
	// lease is released, and the error is returned; after a panic the lease is left to expire. ctx
	// ends when the lease does. Without OnPromotion the leader serves at once.
	OnPromotion func(context.Context, *Lease) error
	// Clock counts deadlines. It must be monotonic, must not be set by anything, and must run while
	// the machine is suspended. Nil for boottime.Now. A test in a synctest bubble uses the bubble's
	// time; see package clienttest.
	Clock func() time.Duration
}

// Client calls one server. Its methods may be called concurrently.
type Client struct {
	template *http.Request // of the server's address, whose path has no trailing slash; never changed
	json     []string      // the value of the Accept header; never changed
	buffers  *sync.Pool    // of *bytes.Buffer, for replies
	http     http.Client
	spare    http.RoundTripper // with its own connections; nil if the caller chose the transport
	limit    time.Duration     // of a call, in addition to the wait it asks for; 0 for none
	silence  time.Duration     // of a stream

	credential func(context.Context) (string, error)
	candidate  Candidate
	id         *identity // used if the Candidate has no ID
	groups     *groups   // of its leases, shared with the clients that As returns
	log        *slog.Logger
	onNotice   func(Notice) // this and the next two may be nil

	onSuccession func(context.Context, Succession) error
	onPromotion  func(context.Context, *Lease) error

	clock func() time.Duration
}

const (
	defaultLimit   = 30 * time.Second
	defaultSilence = 45 * time.Second
)

// ErrPlainHTTP is New's error for a Server on another machine that is called over plain HTTP.
var ErrPlainHTTP = errors.New("the server is on another machine, and over http:// keys and credentials can be read on the way")

// New returns a client. It does not connect; it returns an error if the server's URL is invalid or,
// unless c.Insecure is set, ErrPlainHTTP.
func New(c Config) (*Client, error) {
	server, err := parseServer(c.Server)
	if err == nil && !c.Insecure {
		err = checkSecure(server)
	}
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	template, err := http.NewRequest(http.MethodGet, server, nil)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	client := &Client{
		template: template, json: []string{wire.ContentType}, buffers: &sync.Pool{New: func() any { return new(bytes.Buffer) }}, limit: defaultLimit, silence: cmp.Or(c.Silence, defaultSilence),
		credential: c.Credential, candidate: c.Candidate, id: &identity{}, groups: &groups{}, log: cmp.Or(c.Log, slog.Default()), onNotice: c.OnNotice, clock: c.Clock,
		onSuccession: c.OnSuccession, onPromotion: c.OnPromotion,
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

// overSpareConnections returns a client that uses other connections, if there are any.
func (c *Client) overSpareConnections() *Client {
	other := *c
	if c.spare != nil {
		other.http.Transport = c.spare
	}
	return &other
}

// parseServer never repeats the address in an error: it may contain a password.
func parseServer(server string) (string, error) {
	if scheme, _, _ := strings.Cut(server, "://"); !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return "", errors.New("the server's address must begin with http:// or https://, as in http://127.0.0.1:8080")
	}
	u, err := url.Parse(server)
	parse, unparsed := errors.AsType[*url.Error](err)
	switch {
	case err == nil && u.User != nil, err != nil && strings.Contains(server, "@"):
		return "", errors.New("the server's address must not contain a user or a password")
	case unparsed:
		// the url.Error would repeat it
		return "", fmt.Errorf("the server's address is not a URL: %w", parse.Err)
	case err != nil:
		return "", err
	case u.Hostname() == "":
		return "", errors.New("the server's address has no host")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(server, "#"):
		return "", errors.New("the server's address must not contain ? or #")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// checkSecure returns an error if a call of the server leaves this machine in plain text.
func checkSecure(server string) error {
	u, err := url.Parse(server)
	if err != nil || u.Scheme == "https" {
		return err
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(u.Hostname(), "localhost") {
		return nil
	}
	return fmt.Errorf("%w; use https://, or set Config.Insecure if the connection is encrypted otherwise", ErrPlainHTTP)
}
