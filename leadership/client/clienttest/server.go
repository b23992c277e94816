package clienttest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"regent/httpapi"
	"regent/leadership/client"
	"regent/leadership/instance"
	"regent/leadership/statement"
	"regent/store/memory"
)

// Server is a Regent server that starts without elections and ends with the test. Its methods may
// be called concurrently.
type Server struct {
	start     time.Time // of its clock
	server    http.Server
	transport http.Transport // of the clients
	stop      context.CancelFunc
	running   sync.WaitGroup

	mu    sync.Mutex
	cut   bool              // guarded by mu
	links map[net.Conn]bool // the clients' ends of open connections; guarded by mu
	dials chan net.Conn     // the server's ends
}

// New starts a server that is closed when the test ends. In a testing/synctest bubble, pass the
// bubble's T.
func New(t testing.TB) *Server {
	s := Start()
	t.Cleanup(s.Close)
	return s
}

// Start starts a server outside a test, for example in an example. The caller must close it.
func Start() *Server {
	s := &Server{start: time.Now(), links: map[net.Conn]bool{}, dials: make(chan net.Conn)}
	store := memory.New(memory.Config{})
	service, err := instance.New(instance.Config{Store: store, Journal: store, Name: "clienttest", Alone: true, Now: s.clock})
	if err != nil {
		panic(err) // fixed arguments: cannot fail
	}
	s.transport.DialContext = s.dial
	issuer, err := newIssuer()
	if err != nil {
		panic(err) // a new key is valid
	}
	s.server.Handler = httpapi.New(httpapi.Config{Service: service, Statements: issuer})
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.running.Go(func() { service.Run(ctx) })
	s.running.Go(func() { _ = s.server.Serve(&listener{dials: s.dials, closed: make(chan struct{})}) })
	return s
}

// newIssuer returns an issuer with a key of its own.
func newIssuer() (*statement.Issuer, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return statement.NewIssuer("", statement.Key{Public: public, Sign: func(_ context.Context, message []byte) ([]byte, error) {
		return ed25519.Sign(private, message), nil
	}})
}

// Close ends the server. Its elections are lost.
func (s *Server) Close() {
	s.Cut()
	s.transport.CloseIdleConnections()
	s.stop()
	s.server.Close()
	s.running.Wait()
}

// Client returns a client of the server that campaigns as the candidate.
func (s *Server) Client(candidate client.Candidate) *client.Client {
	config := s.Config()
	config.Candidate = candidate
	c, err := client.New(config)
	if err != nil {
		panic(err) // the address is valid
	}
	return c
}

// Config returns the configuration of a client: the server's address, its connections, its clock,
// and a discarding log.
func (s *Server) Config() client.Config {
	return client.Config{
		Server: "http://localhost",
		HTTP:   &http.Client{Transport: &s.transport},
		Log:    slog.New(slog.DiscardHandler),
		Clock:  s.clock,
	}
}

func (s *Server) clock() time.Duration { return time.Since(s.start) }

var errCut = errors.New("clienttest: the server is cut off")

// Cut breaks all connections and refuses new ones until Heal. The server itself keeps running, and
// leases expire.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = true
	for link := range s.links {
		link.Close()
		delete(s.links, link)
	}
}

// Heal ends the effect of Cut.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = false
}

func (s *Server) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	if !s.link(ours) {
		return nil, errCut
	}
	select {
	case s.dials <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// link records a connection. It reports false if the server is cut off.
func (s *Server) link(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.cut {
		s.links[c] = true
	}
	return !s.cut
}

// listener is a net.Listener for the connections made by dial.
type listener struct {
	dials  <-chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.dials:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (*listener) Addr() net.Addr { return address{} }

type address struct{}

func (address) Network() string { return "pipe" }
func (address) String() string  { return "regent.test" }
