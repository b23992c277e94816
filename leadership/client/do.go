package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

type call struct {
	name        string // for errors
	method      string
	path        string
	suffix      string // of the path; set by the callers of about
	query       url.Values
	header      map[string]string // in addition to the common headers
	wait        time.Duration     // how long the server is asked to wait
	mutates     bool              // the call may change something, so its outcome can be unknown
	body        any               // nil for none
	answer      any               // pointer to the result of a success
	replyHeader *http.Header      // receives the headers of a success; may be nil
}

// maxReply limits the size of a reply: twice a full page of elections with the largest metadata.
const maxReply = 16 << 20

func (c *Client) do(ctx context.Context, k call) error {
	if limit := c.limit + k.wait; c.limit > 0 {
		if end, ok := ctx.Deadline(); !ok || time.Until(end) > limit {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, limit)
			defer cancel()
		}
	}
	var sent atomic.Int32
	if k.mutates { // otherwise it does not matter
		ctx = traced(ctx, &sent)
	}
	request, err := c.request(ctx, k)
	if err != nil {
		return fmt.Errorf("client: %s: %w", k.name, err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("client: %s: %w: %w", k.name, leadership.StoreUnavailable, err)
	}
	if err := c.authorize(request); err != nil {
		return fmt.Errorf("client: %s: %w", k.name, err)
	}
	response, err := c.send(request)
	if err != nil {
		return fmt.Errorf("client: %s: %w: %w", k.name, transportCode(k, sent.Load(), err), err)
	}
	defer response.Body.Close()
	buffer := c.buffers.Get().(*bytes.Buffer)
	defer c.reuse(buffer)
	err = readAll(buffer, io.LimitReader(response.Body, maxReply+1), response.ContentLength)
	body := buffer.Bytes()
	switch {
	case err != nil:
		return fmt.Errorf("client: %s: %w: %w", k.name, lostCode(k.mutates), err)
	case len(body) > maxReply:
		return misread(k.name, k.mutates, fmt.Errorf("the reply is larger than %d bytes", maxReply))
	}
	return read(k, response, body)
}

// send does what http.Client.Do does, without its cost if the client has neither cookies nor a
// timeout of its own. Redirects are not followed.
func (c *Client) send(r *http.Request) (*http.Response, error) {
	if c.http.Jar != nil || c.http.Timeout > 0 {
		return c.http.Do(r)
	}
	response, err := c.http.Transport.RoundTrip(r)
	if err == nil && response == nil {
		err = errors.New("the transport returned neither a response nor an error")
	}
	if err != nil {
		if tlsError, ok := errors.AsType[tls.RecordHeaderError](err); ok && string(tlsError.RecordHeader[:]) == "HTTP/" {
			err = http.ErrSchemeMismatch
		}
		return nil, &url.Error{Op: r.Method, URL: r.URL.String(), Err: err}
	}
	if response.Body == nil {
		response.Body = http.NoBody
	}
	return response, nil
}

// readAll reads from into the buffer. length is a hint of the size, -1 if unknown.
func readAll(into *bytes.Buffer, from io.Reader, length int64) error {
	into.Reset()
	known := min(max(length, 0), maxBuffer) // it may be wrong
	into.Grow(int(known) + bytes.MinRead)   // room to see its end
	_, err := into.ReadFrom(from)
	return err
}

// maxBuffer is how many bytes of a reply are read without growing the buffer: enough for a batch.
const maxBuffer = 64 << 10

// reuse takes back the buffer of a reply. Nothing may refer to it any more.
func (c *Client) reuse(b *bytes.Buffer) {
	if b.Cap() <= 2*maxBuffer {
		c.buffers.Put(b)
	}
}

// request makes a request from the template, whose URL was parsed once.
func (c *Client) request(ctx context.Context, k call) (*http.Request, error) {
	request := c.template.WithContext(ctx)
	target := *c.template.URL
	if target.Path += k.path; target.RawPath != "" {
		target.RawPath += k.path
	}
	target.RawQuery = k.query.Encode()
	request.Method, request.URL = k.method, &target
	request.Header = http.Header{"Accept": c.json} // Set replaces the value, and leaves the slice alone
	if k.body != nil {
		text, err := wire.Marshal(k.body)
		if err != nil {
			return nil, err
		}
		request.Header["Content-Type"] = c.json
		request.ContentLength = int64(len(text))
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
		request.Body, _ = request.GetBody()
	}
	for name, value := range k.header {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	if id := leadership.RequestID(ctx); wire.ValidRequestID(id) {
		request.Header.Set(wire.RequestIDHeader, id)
	}
	return request, nil
}

func (c *Client) authorize(r *http.Request) error {
	if c.credential == nil {
		return nil
	}
	token, err := within(r.Context(), c.credential)
	if err != nil {
		return fmt.Errorf("%w: no credential to identify the caller: %w", leadership.StoreUnavailable, err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// within calls ask, and returns when ctx ends even if ask ignores ctx, as many token sources do.
func within(ctx context.Context, ask func(context.Context) (string, error)) (string, error) {
	var text string
	var err error
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		text, err = ask(ctx)
	}()
	select {
	case <-answered:
		return text, err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// How far a request got, according to its transport.
const (
	untold int32 = iota // the transport reported nothing
	connecting
	connected
)

// traced records how far the request gets. A request that once had a connection may have been sent,
// whatever came afterwards.
func traced(ctx context.Context, progress *atomic.Int32) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { progress.CompareAndSwap(untold, connecting) },
		GotConn: func(httptrace.GotConnInfo) { progress.Store(connected) },
	})
}

// transportCode returns the code of a call that was not answered.
func transportCode(k call, progress int32, err error) leadership.Code {
	op, ok := errors.AsType[*net.OpError](err)
	dialing := ok && op.Op == "dial"
	if progress == connecting || progress == untold && dialing {
		return leadership.StoreUnavailable
	}
	return lostCode(k.mutates)
}

// lostCode returns the code of a call whose answer is lost.
func lostCode(mutates bool) leadership.Code {
	if mutates {
		return leadership.OutcomeUnknown
	}
	return leadership.StoreUnavailable
}

// misread returns the error of a success that cannot be read or does not answer the call: the call
// may have been carried out.
func misread(name string, mutates bool, err error) error {
	return fmt.Errorf("client: %s: %w: the reply does not answer this call: %w", name, lostCode(mutates), err)
}

// read converts a reply into the call's result or an error.
func read(k call, response *http.Response, body []byte) error {
	if response.StatusCode != http.StatusOK || contentType(response) != wire.ContentType {
		return refusal(k, response, body)
	}
	if err := wire.Unmarshal(body, k.answer); err != nil {
		return misread(k.name, k.mutates, err)
	}
	if k.replyHeader != nil {
		*k.replyHeader = response.Header
	}
	return nil
}

// refusal returns the error in a reply: a problem document, or a reply that is not from a Regent
// server.
func refusal(k call, response *http.Response, body []byte) error {
	if p, ok := wire.ReadProblem(response.Header, body); ok {
		return p.Leadership()
	}
	return newReplyError(k, response, body)
}

func contentType(response *http.Response) string {
	text := response.Header.Get("Content-Type")
	if text == wire.ContentType {
		return text
	}
	contentType, _, _ := mime.ParseMediaType(text)
	return contentType
}
