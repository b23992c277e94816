package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"regent/leadership/client"
)

// scriptedServer is a server without a network, so that it works in a bubble. Its acts answer one
// request each, in order; the last one answers all further requests. A handler that returns ends
// its reply; one that panics with http.ErrAbortHandler breaks it off.
type scriptedServer struct {
	acts []http.HandlerFunc

	mu       sync.Mutex
	requests []*http.Request // guarded by mu
	at       []time.Time     // arrival times; guarded by mu
	open     map[int]bool    // replies whose body is not closed yet; guarded by mu
}

// RoundTrip implements http.RoundTripper.
func (s *scriptedServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	n := len(s.requests)
	act := s.acts[min(n, len(s.acts)-1)]
	s.requests, s.at = append(s.requests, r), append(s.at, time.Now())
	s.mu.Unlock()
	body, out := io.Pipe()
	w := &scriptedWriter{header: http.Header{}, out: out, status: make(chan int, 1)}
	stop := context.AfterFunc(r.Context(), func() { out.CloseWithError(r.Context().Err()) })
	go func() {
		defer stop()
		defer func() {
			if recover() != nil {
				out.CloseWithError(io.ErrUnexpectedEOF)
			}
		}()
		act(w, r)
		w.WriteHeader(http.StatusOK)
		out.Close()
	}()
	select {
	case status := <-w.status:
		s.setOpen(n, true)
		return &http.Response{StatusCode: status, Header: w.header, Body: &scriptedBody{body, s, n}, Request: r}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func (s *scriptedServer) setOpen(n int, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[int]bool{}
	}
	s.open[n] = open
}

// scriptedBody reports when it is closed.
type scriptedBody struct {
	io.ReadCloser
	server *scriptedServer
	n      int
}

func (b *scriptedBody) Close() error {
	b.server.setOpen(b.n, false)
	return b.ReadCloser.Close()
}

// scriptedWriter is a reply whose writer waits for its reader.
type scriptedWriter struct {
	header http.Header
	out    *io.PipeWriter
	status chan int
	begun  bool
}

func (w *scriptedWriter) Header() http.Header { return w.header }

func (w *scriptedWriter) WriteHeader(status int) {
	if !w.begun {
		w.begun = true
		w.status <- status
	}
}

func (w *scriptedWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.out.Write(b)
}

func (s *scriptedServer) client(t *testing.T) *client.Client {
	return clientOf(t, "http://localhost", s)
}

func (s *scriptedServer) cursors() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, r := range s.requests {
		all = append(all, r.Header.Get("Last-Event-ID"))
	}
	return all
}

func (s *scriptedServer) pauses() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []time.Duration
	for i := range s.at[1:] {
		all = append(all, s.at[i+1].Sub(s.at[i]))
	}
	return all
}

// streaming sends the texts and leaves the stream open.
func streaming(texts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		tell(w, texts...)
		<-r.Context().Done()
	}
}

// ending sends the texts and then ends the connection.
func ending(texts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { tell(w, texts...) }
}

// breaking sends the texts and then breaks the connection.
func breaking(texts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		tell(w, texts...)
		panic(http.ErrAbortHandler)
	}
}

// rest waits while the request lasts.
func rest(r *http.Request, d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	}
}

func tell(w http.ResponseWriter, texts ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	for _, text := range append([]string{"retry: 1000\n\n"}, texts...) {
		io.WriteString(w, text)
	}
}

func replying(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func problem(status int, code string) http.HandlerFunc {
	return replying(status, "application/problem+json", fmt.Sprintf(`{"type":"about:blank","title":"No","status":%d,"detail":"no","code":%q}`, status, code))
}

// The messages of a stream.

func event(election string, revision int) string {
	return eventAt(election, revision, fmt.Sprint(revision))
}

func eventAt(election string, revision int, id string) string {
	return fmt.Sprintf("id: %s\ndata: {\"election\":%q,\"revision\":%d,\"type\":\"updated\",\"at\":\"2027-03-01T12:00:00Z\",\"leaderId\":\"ann\",\"fencingToken\":3}\n\n", id, election, revision)
}

func snapshot(election string, revision int) string {
	return fmt.Sprintf("event: snapshot\nid: %d\n%s", revision, snapshotData(election, revision))
}

// snapshotAmong is one of several snapshots, which have no id.
func snapshotAmong(election string, revision int) string {
	return "event: snapshot\n" + snapshotData(election, revision)
}

func snapshotData(election string, revision int) string {
	return fmt.Sprintf("data: {\"election\":%q,\"state\":\"held\",\"leaderId\":\"ann\",\"fencingToken\":3,\"revision\":%d,\"leaseDuration\":\"30s\",\"expiresInMs\":30000,\"configuration\":{\"leaseDuration\":\"30s\",\"lockDelay\":\"0s\"}}\n\n", election, revision)
}

func ready(elections int, id string) string {
	return fmt.Sprintf("event: ready\nid: %s\ndata: {\"elections\":%d}\n\n", id, elections)
}

func end(reason, id string) string {
	return fmt.Sprintf("event: end\nid: %s\ndata: {\"reason\":%q}\n\n", id, reason)
}

const ping = ": ping\n\n"

// transcript is what a watch yielded, a word for each News, and its final error.
type transcript struct {
	words   []string
	cursors []string
	err     error
}

// errEnough ends a watch that would go on.
var errEnough = errors.New("the test has seen enough")

// watch watches until a permanent error, or until enough News were yielded.
func watch(ctx context.Context, c *client.Client, r client.WatchRequest, enough int) transcript {
	var s transcript
	for n, err := range c.Watch(ctx, r) {
		if err != nil {
			s.err = err
			continue // there must be no further iteration
		}
		s.words, s.cursors = append(s.words, wordOf(n)), append(s.cursors, n.Cursor)
		if len(s.words) == enough {
			s.err = errEnough
			break
		}
	}
	return s
}

func wordOf(n client.News) string {
	switch {
	case n.Lease != nil && n.Event == nil && !n.Ready:
		return fmt.Sprintf("%s is at %d", n.Lease.Election, n.Lease.Revision)
	case n.Event != nil && n.Lease == nil && !n.Ready:
		return fmt.Sprintf("%s %d", n.Event.Election, n.Event.Revision)
	case n.Ready && n.Lease == nil && n.Event == nil:
		return "ready"
	}
	return fmt.Sprintf("%+v", n)
}
