package httpapi

import (
	"bytes"
	"errors"
	"net"
)

// giveBack passes the connection to net/http, with the bytes that were read from it.
func (l *longCalls) giveBack(c net.Conn, read []byte) {
	l.serving.Do(func() { go l.server.Serve(l) })
	select {
	case l.resumed <- &resumed{Conn: c, read: read}:
	case <-l.gone:
		l.open.drop(c)
	}
}

// Accept implements net.Listener, for connections that net/http gets back.
func (l *longCalls) Accept() (net.Conn, error) {
	select {
	case c := <-l.resumed:
		return c, nil
	case <-l.gone:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *longCalls) Close() error {
	l.closed()
	return nil
}

// Addr implements net.Listener. Nothing asks for it.
func (l *longCalls) Addr() net.Addr { return &net.TCPAddr{} }

// resumed is a connection that begins with bytes that were read from it before.
type resumed struct {
	net.Conn
	read  []byte // before
	begun bool   // a byte of the next request was returned
}

// Read implements net.Conn. It skips empty lines before the next request, which a caller may send
// after a body (RFC 9112, section 2.2): net/http skips them only after a body that it has read.
func (r *resumed) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil && len(p) > 0 {
		if n = copy(p, r.read); n > 0 {
			r.read = r.read[n:]
		} else {
			n, err = r.Conn.Read(p)
		}
		if !r.begun {
			n = copy(p, bytes.TrimLeft(p[:n], "\r\n"))
			r.begun = n > 0
		}
	}
	return n, err
}

// CloseWrite is for net/http, which lets a caller read the answer before it closes the connection.
func (r *resumed) CloseWrite() error {
	if c, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// plain returns the connection below a resumed one.
func plain(c net.Conn) net.Conn {
	if r, ok := c.(*resumed); ok {
		return r.Conn
	}
	return c
}
