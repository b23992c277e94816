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
	"sync"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/client"
)

// A connection of HTTP/2 has room for every renewal that replaces one which came to nothing there, so that a dead one would take the lease with it.
func TestAConnectionThatIsDeadIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	l := &deadening{}
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

// deadening is a listener whose connections can be made to bring nothing any more.
type deadening struct {
	net.Listener
	mu    sync.Mutex
	conns []*mortal // guarded by mu
}

func (l *deadening) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m := &mortal{Conn: c, dead: make(chan struct{}), ended: make(chan struct{})}
	l.conns = append(l.conns, m)
	return m, nil
}

func (l *deadening) accepted() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// kill makes those that there are dead.
func (l *deadening) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		close(c.dead)
	}
}

// end lets their readers go.
func (l *deadening) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		close(c.ended)
	}
}

// mortal is a connection that, once it is dead, passes nothing on.
type mortal struct {
	net.Conn
	dead, ended chan struct{}
}

func (c *mortal) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	select {
	case <-c.dead:
		<-c.ended
		return 0, io.EOF
	default:
		return n, err
	}
}
