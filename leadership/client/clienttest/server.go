package clienttest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"regent/httpapi"
	"regent/leadership/client"
	"regent/leadership/instance"
	"regent/store/memory"
)

// Server is a Regent server with no elections in it, until the test ends. All methods may be called at the same time.
type Server struct {
	start time.Time // of its clock
	http  http.Client

	mu    sync.Mutex
	cut   bool              // guarded by mu
	links map[net.Conn]bool // the clients' ends of what is open; guarded by mu
	dials chan net.Conn     // the server's ends
}

// New starts a server. In a bubble of testing/synctest it is called with the bubble's T.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{start: time.Now(), links: map[net.Conn]bool{}, dials: make(chan net.Conn)}
	store := memory.New(memory.Config{})
	service, err := instance.New(instance.Config{Store: store, Name: "clienttest", Alone: true, Now: s.clock})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	server := &http.Server{Handler: httpapi.New(httpapi.Config{Service: service})}
	transport := &http.Transport{DialContext: s.dial}
	s.http.Transport = transport

	var running sync.WaitGroup
	running.Go(func() { service.Run(ctx) })
	running.Go(func() { _ = server.Serve(listener{s.dials, make(chan struct{}), &sync.Once{}}) })
	t.Cleanup(func() {
		s.Cut()
		transport.CloseIdleConnections()
		cancel()
		server.Close()
		running.Wait()
	})
	return s
}

// Client returns a client of the server, with the test's clock.
func (s *Server) Client(c client.Candidate) *client.Client {
	cl, err := client.New(client.Config{Server: "http://regent.test", HTTP: &s.http, Candidate: c, Clock: s.clock})
	if err != nil {
		panic(err) // the address is as good as it is
	}
	return cl
}

func (s *Server) clock() time.Duration { return time.Since(s.start) }

var errCut = errors.New("clienttest: the server is cut off")

// Cut breaks all connections, and refuses others until Heal. The server itself goes on, and leases run out.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = true
	for link := range s.links {
		link.Close()
		delete(s.links, link)
	}
}

// Heal ends what Cut began.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = false
}

// dial connects a client.
func (s *Server) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	s.mu.Lock()
	cut := s.cut
	s.links[theirs] = !cut
	s.mu.Unlock()
	if cut {
		return nil, errCut
	}
	select {
	case s.dials <- ours:
		return theirs, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// listener is a net.Listener of what is dialled.
type listener struct {
	dials  <-chan net.Conn
	closed chan struct{}
	once   *sync.Once
}

func (l listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.dials:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (listener) Addr() net.Addr { return address{} }

type address struct{}

func (address) Network() string { return "pipe" }
func (address) String() string  { return "regent.test" }
