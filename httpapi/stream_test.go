package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"regent/httpapi"
	"regent/store/memory"
)

// deadlines is a ResponseWriter that remembers its write deadlines.
type deadlines struct {
	*httptest.ResponseRecorder
	mu      sync.Mutex
	flushed bool          // guarded by mu
	lifted  chan struct{} // closed when there is no deadline after something was sent
	once    sync.Once
}

func (d *deadlines) SetReadDeadline(time.Time) error { return nil }

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.flushed && at.IsZero() {
		d.once.Do(func() { close(d.lifted) })
	}
	return nil
}

func (d *deadlines) FlushError() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.flushed = true
	return nil
}

// HTTP/2 ends a stream whose write deadline passes, although nothing is being written.
func TestAStreamOverHTTP2HasADeadlineOnlyWhileItSends(t *testing.T) {
	t.Parallel()
	c := &clock{now: time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)}
	inst := newInstance(t, memory.New(memory.Config{Now: c.Now}), c)
	api := httpapi.New(httpapi.Config{Service: inst})
	ctx, leave := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { inst.Run(ctx) })
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/events", nil)
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0
	w := &deadlines{ResponseRecorder: httptest.NewRecorder(), lifted: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		api.ServeHTTP(w, r)
	}()
	select {
	case <-w.lifted:
	case <-ended:
		t.Error("the stream ended")
	case <-time.After(time.Minute):
		t.Error("a minute later the stream still has the deadline of what it has sent")
	}
	leave()
	<-ended
}
