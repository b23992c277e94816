package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// chunked reports whether a reply that was begun has no length.
func (c *longCall) chunked() bool { return c.header.Get("Content-Length") == "" && hasBody(c.status) }

// hasBody reports whether replies with the status have one.
func hasBody(status int) bool {
	return status >= http.StatusOK && status != http.StatusNoContent && status != http.StatusNotModified
}

// Header implements http.ResponseWriter.
func (c *longCall) Header() http.Header { return c.header }

// WriteHeader implements http.ResponseWriter.
func (c *longCall) WriteHeader(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.w != nil {
		c.w.WriteHeader(status)
	}
	if c.status == 0 {
		c.status = status
	}
}

// Write implements http.ResponseWriter.
func (c *longCall) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == 0 {
		c.status = http.StatusOK
	}
	switch {
	case c.w != nil:
		return c.w.Write(p)
	case c.failed != nil:
		return 0, c.failed
	case !hasBody(c.status):
		return 0, http.ErrBodyNotAllowed
	case c.out == nil:
		c.out = c.calls.buffers.Get().(*[]byte)
	}
	*c.out = append(*c.out, p...)
	return len(p), nil
}

// Flush implements http.Flusher.
func (c *longCall) Flush() { c.FlushError() }

// FlushError is for http.ResponseController.
func (c *longCall) FlushError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == 0 {
		c.status = http.StatusOK
	}
	if c.w != nil {
		return http.NewResponseController(c.w).Flush()
	}
	c.send(false)
	return c.failed
}

// send sends the bytes that were written since the last time. A reply that is complete when it is
// first sent has a length, others are sent in chunks. Call with mu held.
func (c *longCall) send(complete bool) {
	if c.failed != nil {
		return
	}
	var body []byte
	if c.out != nil {
		body = *c.out
	}
	message := c.calls.buffers.Get().(*[]byte)
	whole := complete && !c.sent
	if !c.sent {
		c.sent = true
		*message = c.appendHeader(*message, body, whole)
	}
	switch {
	case whole:
		*message = append(*message, body...)
	case len(body) > 0:
		*message = fmt.Appendf(*message, "%x\r\n%s\r\n", len(body), body)
	}
	if complete && !whole && hasBody(c.status) {
		*message = append(*message, "0\r\n\r\n"...)
	}
	if _, c.failed = c.conn.Write(*message); c.failed != nil {
		c.cancel()
	}
	c.reuse(message)
	c.reuse(c.out)
	c.out = nil
}

// largestBuffer is the capacity in bytes of the largest buffer that is used again.
const largestBuffer = 16 << 10

func (c *longCall) reuse(b *[]byte) {
	if b != nil && cap(*b) <= largestBuffer {
		*b = (*b)[:0]
		c.calls.buffers.Put(b)
	}
}

// appendHeader appends the status line and the header of the reply.
func (c *longCall) appendHeader(to, body []byte, whole bool) []byte {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	h := c.header
	if h.Get("Date") == "" {
		h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	switch {
	case !hasBody(c.status):
	case whole:
		h.Set("Content-Length", fmt.Sprint(len(body)))
	default:
		h.Set("Transfer-Encoding", "chunked")
	}
	if h.Get("Content-Type") == "" && len(body) > 0 {
		h.Set("Content-Type", http.DetectContentType(body))
	}
	if c.close = c.close || strings.EqualFold(h.Get("Connection"), "close") || c.calls.stops(); c.close {
		h.Set("Connection", "close")
	}
	b := bytes.NewBuffer(fmt.Appendf(to, "HTTP/1.1 %03d %s\r\n", c.status, http.StatusText(c.status)))
	h.Write(b) // into memory: no error
	b.WriteString("\r\n")
	return b.Bytes()
}

// SetReadDeadline is for http.ResponseController. It does nothing once the connection is taken
// over: the body was read, and the next request has no deadline.
func (c *longCall) SetReadDeadline(t time.Time) error {
	c.deadlines.Lock()
	defer c.deadlines.Unlock()
	if c.taken {
		return nil
	}
	return c.conn.SetReadDeadline(t)
}

// SetWriteDeadline is for http.ResponseController. It does not block while a write is under way,
// and moves the deadline of that write too.
func (c *longCall) SetWriteDeadline(t time.Time) error {
	c.deadlines.Lock()
	defer c.deadlines.Unlock()
	c.writeBy = t
	return c.conn.SetWriteDeadline(t)
}
