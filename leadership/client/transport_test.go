package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/httpapi/apitest"
	"regent/leadership"
	"regent/leadership/client"
)

// One HTTP/2 connection carries all retries of a renewal, so a dead one would cost the lease.
func TestAConnectionThatIsDeadIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	certified := httptest.NewTLSServer(nil) // for its certificate
	certified.Close()
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{made: make(chan net.Conn), closed: make(chan struct{})}
		server := &http.Server{TLSConfig: &tls.Config{Certificates: certified.TLS.Certificates}, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				t.Errorf("the request came by %s", r.Proto)
			}
			replying(http.StatusOK, "application/json", leaseOf("planner", "ann", "1"))(w, r)
		})}
		go server.ServeTLS(l, "", "")
		transport := client.NewTransport().(*http.Transport)
		transport.TLSClientConfig, transport.DialContext = &tls.Config{RootCAs: roots, ServerName: "example.com"}, l.dial
		c := clientOf(t, "https://example.com", transport)
		get := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := c.Get(ctx, "planner")
			return err
		}
		require.NoError(t, get())
		close(l.dialled[0].dead)
		began := time.Now()
		require.ErrorIs(t, get(), leadership.StoreUnavailable, "the dead connection")
		for get() != nil {
			if time.Since(began) > time.Minute {
				t.Fatal("a minute later the dead connection is still used")
			}
		}
		if took := time.Since(began); len(l.dialled) != 2 || took > 10*time.Second {
			t.Errorf("%d connections, after %v; want a second one within a third of a lease", len(l.dialled), took)
		}
		transport.CloseIdleConnections()
		server.Close()
	})
}

// pipes is a listener without a network.
type pipes struct {
	made    chan net.Conn
	closed  chan struct{}
	dialled []*mortal
}

func (l *pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	c := &mortal{Conn: ours, dead: make(chan struct{}), closed: make(chan struct{})}
	l.dialled = append(l.dialled, c)
	l.made <- theirs
	return c, nil
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.made:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error { close(l.closed); return nil }

func (l *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// mortal is a connection that passes nothing on once it is dead.
type mortal struct {
	net.Conn
	dead, closed chan struct{}
	once         sync.Once
}

func (c *mortal) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	select {
	case <-c.dead:
		<-c.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (c *mortal) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func TestNoCompressionIsAskedFor(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Empty(t, r.Header.Get("Accept-Encoding"), "Accept-Encoding")
		replying(http.StatusOK, "application/json", leaseOf("planner", "ann", "1"))(w, r)
	}))
	t.Cleanup(server.Close)
	_, err := clientOf(t, server.URL, client.NewTransport()).Get(t.Context(), "planner")
	assert.NoError(t, err)
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
	_, err := clientOf(t, "http://localhost", apitest.RoundTrip(func(*http.Request) (*http.Response, error) { return nil, nil })).Get(t.Context(), "planner")
	assert.ErrorIs(t, err, leadership.StoreUnavailable)
}
