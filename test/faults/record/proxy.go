package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"regent/leadership/wire"
	"regent/test/checker"
)

// Proxy passes HTTP on to a server.
type Proxy struct {
	caller   string
	target   string
	recorder *Recorder
	drawn    atomic.Int64 // ids of requests

	listener net.Listener
	server   *http.Server
	serving  sync.WaitGroup
	lines    sync.Map // by the connection of the caller: the transport with the one that belongs to it
}

// NewProxy returns a proxy to the server at host:port, which listens on a loopback port of its own
// until Close. The calls are written down as those of the caller; those without an id get one that
// begins with the caller's name, which no other proxy may have.
func NewProxy(caller, target string, recorder *Recorder) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	t := &Proxy{caller: caller, target: target, recorder: recorder, listener: listener}
	t.server = &http.Server{Handler: t, ConnContext: t.connect, ConnState: t.disconnect}
	t.serving.Go(func() { t.server.Serve(listener) })
	return t, nil
}

// URL is where the proxy begins.
func (t *Proxy) URL() string { return "http://" + t.listener.Addr().String() }

// Close stops the proxy and ends all calls.
func (t *Proxy) Close() {
	t.server.Close()
	t.serving.Wait()
}

type lineKey struct{}

func (t *Proxy) connect(ctx context.Context, c net.Conn) context.Context {
	dial := (&net.Dialer{Timeout: 5 * time.Second}).DialContext
	line := &http.Transport{DisableCompression: true, MaxConnsPerHost: 1, MaxIdleConnsPerHost: 1, DialContext: dial}
	t.lines.Store(c, line)
	return context.WithValue(ctx, lineKey{}, line)
}

func (t *Proxy) disconnect(c net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	if line, ok := t.lines.LoadAndDelete(c); ok {
		line.(*http.Transport).CloseIdleConnections()
	}
}

// ServeHTTP passes a call on and records it.
func (t *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if r.Header.Get(wire.RequestIDHeader) == "" {
		r.Header.Set(wire.RequestIDHeader, fmt.Sprintf("%s-%d", t.caller, t.drawn.Add(1)))
	}
	call, recorded := callOf(r, body)
	call.Caller, call.Asked = t.caller, t.recorder.Now()
	n := 0
	response, sent, err := t.send(r, body, func() {
		if recorded {
			n = t.recorder.Sent(call)
		}
	})
	switch {
	case err == nil && isStream(response):
		pass(w, response)
		return
	case err != nil && !sent:
		panic(http.ErrAbortHandler) // nothing has left
	case err != nil:
		t.lost(call, n)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		copyHeader(w, response)
		w.Write(answer)
		http.NewResponseController(w).Flush()
		t.lost(call, n)
	}
	call.Answered = t.recorder.Now()
	if recorded {
		if err := read(&call, response.StatusCode, answer); err != nil {
			t.recorder.Fail("%s: %s of %s: %v: %.200q", t.caller, call.Verb, call.Election, err, answer)
		}
		t.recorder.Call(call, n)
	}
	copyHeader(w, response)
	w.Write(answer)
}

// send sends the call to the server. leaves is called before any of it leaves; sent reports whether
// it was.
func (t *Proxy) send(r *http.Request, body []byte, leaves func()) (response *http.Response, sent bool, err error) {
	once := sync.OnceFunc(func() {
		leaves()
		sent = true
	})
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { once() }})
	request, err := http.NewRequestWithContext(ctx, r.Method, "http://"+t.target+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, false, err
	}
	request.Header = r.Header.Clone()
	request.GetBody = nil // what was sent is not sent again
	response, err = r.Context().Value(lineKey{}).(*http.Transport).RoundTrip(request)
	return response, sent, err
}

// lost ends a call without an answer. n is 0 for one that is not written down.
func (t *Proxy) lost(call checker.Call, n int) {
	if n > 0 {
		call.Answered, call.Code = checker.Forever, unknown
		t.recorder.Call(call, n)
	}
	panic(http.ErrAbortHandler)
}

func isStream(r *http.Response) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), wire.StreamType)
}

// pass carries a stream until it ends, or breaks off.
func pass(w http.ResponseWriter, r *http.Response) {
	defer r.Body.Close()
	copyHeader(w, r)
	out := http.NewResponseController(w)
	out.Flush()
	buffer := make([]byte, 16<<10)
	for {
		n, err := r.Body.Read(buffer)
		if _, failed := w.Write(buffer[:n]); failed != nil || errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		out.Flush()
	}
}

func copyHeader(w http.ResponseWriter, r *http.Response) {
	maps.Copy(w.Header(), r.Header)
	w.WriteHeader(r.StatusCode)
}
