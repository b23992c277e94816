package proxy_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/test/proxy"
)

const patience = 10 * time.Second

// server accepts connections for the test to speak on.
type server struct{ net.Listener }

func newServer(t *testing.T) server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return server{l}
}

// connect returns both ends of a connection through the hop, over which a byte has gone each way.
func (s server) connect(t *testing.T, hop *proxy.Hop) (client, server *net.TCPConn) {
	t.Helper()
	client = dial(t, hop.Addr()).(*net.TCPConn)
	c, err := s.Accept()
	require.NoError(t, err)
	server = c.(*net.TCPConn)
	t.Cleanup(func() { server.Close() })
	for _, c := range []*net.TCPConn{client, server} {
		c.SetDeadline(time.Now().Add(patience))
		c.Write([]byte("x"))
	}
	for _, c := range []*net.TCPConn{client, server} {
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	return client, server
}

// isReset says whether a connection ended with RST.
func isReset(c net.Conn) bool {
	_, err := io.ReadAll(c)
	return errors.Is(err, syscall.ECONNRESET)
}

func TestHopPassesEverythingOn(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	hop := proxy.ForTest(t, s.Addr().String())
	client, server := s.connect(t, hop)
	much := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	go func() {
		client.Write(much)
		client.CloseWrite()
	}()
	if got, err := io.ReadAll(server); err != nil || !bytes.Equal(got, much) {
		t.Errorf("of %d bytes %d came: %v", len(much), len(got), err)
	}
	server.Write([]byte("thanks"))
	server.Close()
	if got, err := io.ReadAll(client); err != nil || string(got) != "thanks" {
		t.Errorf("after the client's end: %q, %v", got, err)
	}
}

func TestResetReachesBothSidesInAllConditions(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	hop := proxy.ForTest(t, s.Addr().String())
	for _, w := range []proxy.Conditions{{}, {Lost: [2]bool{true, true}, HalfOpen: true, Latency: time.Hour}} {
		hop.Heal()
		client, server := s.connect(t, hop)
		hop.Set(w)
		client.Write([]byte("hello"))
		hop.Reset()
		if !isReset(client) || !isReset(server) {
			t.Errorf("%v: it was not reset", w)
		}
	}
	hop.Heal()
	s.connect(t, hop)
}

func TestHopCutsOnlyTheNextConnection(t *testing.T) {
	t.Parallel()
	hop := proxy.ForTest(t, echo(t))
	before := dial(t, hop.Addr())
	require.NoError(t, talk(before))
	for _, reset := range []bool{false, true} {
		hop.Cut(proxy.Request, 0, reset)
		hop.Cut(proxy.Reply, 4, reset) // instead
		heard, err := recite(dial(t, hop.Addr()), "hello\n")
		if heard != "hell" || reset != errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("cut with a reset %v: %q came, %v", reset, heard, err)
		}
		for _, c := range []net.Conn{before, dial(t, hop.Addr())} {
			if err := talk(c); err != nil {
				t.Errorf("another connection: %v", err)
			}
		}
	}
}
