package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"regent/httpapi/apitest"
	"regent/leadership"
	"regent/leadership/client"
)

// One HTTP/2 connection carries all retries of a renewal, so a dead one would cost the lease.
func TestAConnectionThatIsDeadIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	l := &killableListener{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("the request came by %s", r.Proto)
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, leaseOf("planner", "ann", "1"))
	}))
	l.Listener, server.Listener = server.Listener, l
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	t.Cleanup(l.end)

	transport := client.NewTransport().(*http.Transport)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	c := clientOf(t, server.URL, transport)
	get := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Get(ctx, "planner")
		return err
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	l.kill()
	if err := get(); !errors.Is(err, leadership.StoreUnavailable) {
		t.Fatalf("the dead connection answered: %v", err)
	}
	for began := time.Now(); get() != nil; {
		if time.Since(began) > time.Minute {
			t.Fatal("a minute later the dead connection is still used")
		}
	}
	if n := l.accepted(); n != 2 {
		t.Errorf("there were %d connections, want 2", n)
	}
}

// killableListener is a listener whose connections can be made silent.
type killableListener struct {
	net.Listener
	mu    sync.Mutex
	conns []*killableConn // guarded by mu
}

func (l *killableListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m := &killableConn{Conn: c, dead: make(chan struct{}), ended: make(chan struct{})}
	l.conns = append(l.conns, m)
	return m, nil
}

func (l *killableListener) accepted() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// kill silences the present connections.
func (l *killableListener) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		close(c.dead)
	}
}

// end unblocks their readers.
func (l *killableListener) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		close(c.ended)
	}
}

// killableConn is a connection that passes nothing on once it is dead.
type killableConn struct {
	net.Conn
	dead, ended chan struct{}
}

func (c *killableConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	select {
	case <-c.dead:
		<-c.ended
		return 0, io.EOF
	default:
		return n, err
	}
}

func TestNoCompressionIsAskedFor(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "" {
			t.Errorf("Accept-Encoding: %s", got)
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, leaseOf("planner", "ann", "1"))
	}))
	t.Cleanup(server.Close)
	if _, err := clientOf(t, server.URL, client.NewTransport()).Get(t.Context(), "planner"); err != nil {
		t.Error(err)
	}
}

func TestServerWithoutTLSIsNamedAsSuch(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	address := "https://" + server.Listener.Addr().String()
	_, err := clientOf(t, address, client.NewTransport()).Get(t.Context(), "planner")
	if !errors.Is(err, http.ErrSchemeMismatch) || !strings.Contains(err.Error(), address) {
		t.Errorf("the error is %v", err)
	}
}

// The contract of http.RoundTripper forbids it.
func TestTransportThatReturnsNothingIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := clientOf(t, "http://localhost", apitest.RoundTrip(func(*http.Request) (*http.Response, error) { return nil, nil })).Get(t.Context(), "planner"); !errors.Is(err, leadership.StoreUnavailable) {
		t.Errorf("the error is %v", err)
	}
}
