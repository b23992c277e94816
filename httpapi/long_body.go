package httpapi

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
)

// mostEarly is the length in bytes of the longest body that is read before the handler is called.
// A body of this length usually arrives together with the header.
const mostEarly = 2 << 10

// mayWait reports whether a call with a body may wait. To find out, it reads the body for the
// handler, if the body is short: a goroutine for a call that does not wait costs a quarter of its
// CPU time.
func mayWait(r *http.Request) bool {
	if r.ContentLength <= 0 || r.ContentLength > mostEarly || r.Header["Expect"] != nil {
		return true
	}
	body := &earlyBody{read: make([]byte, r.ContentLength)}
	n, err := io.ReadFull(r.Body, body.read)
	body.read, body.err = body.read[:n], err
	r.Body = body
	return bytes.Contains(body.read, []byte(`"wait"`))
}

// earlyBody is the body of a request, after it was read.
type earlyBody struct {
	read []byte
	err  error // that ended the reading; nil: all was read
}

func (b *earlyBody) Read(p []byte) (int, error) {
	if len(b.read) == 0 {
		return 0, cmp.Or(b.err, io.EOF)
	}
	n := copy(p, b.read)
	if b.read = b.read[n:]; len(b.read) == 0 {
		b.read = nil // takes no memory while the call waits
	}
	return n, nil
}

// Close does nothing: net/http closes the body that it knows.
func (b *earlyBody) Close() error { return nil }

// longBody is the body of a request, which the handler reads.
type longBody struct {
	c *longCall
	io.ReadCloser
}

// Read implements io.Reader. At the end of the body it drops net/http's reader, with its buffer.
func (b *longBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.ReadCloser = http.NoBody
		b.c.arrived.Store(true)
	}
	return n, err
}
