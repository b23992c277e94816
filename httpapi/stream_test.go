package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
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
	}
	leave()
	<-ended
}

// late records whether it is used after its handler has returned, at which a ResponseWriter of
// HTTP/2 panics.
type late struct {
	*httptest.ResponseRecorder
	ctx      context.Context
	returned chan struct{}
	touched  chan bool // whether the handler had returned
}

func (l *late) SetReadDeadline(time.Time) error { return nil }
func (l *late) FlushError() error               { return nil }

// SetWriteDeadline takes long at the end, while the handler has nothing more to do.
func (l *late) SetWriteDeadline(time.Time) error {
	if l.ctx.Err() == nil {
		return nil
	}
	select {
	case <-l.returned:
		l.touched <- true
	case <-time.After(time.Second):
		l.touched <- false
	}
	return nil
}

func TestAStreamDoesNotTouchItsReplyAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &clock{now: time.Now()}
		inst := newInstance(t, memory.New(memory.Config{Now: c.Now}), c)
		ctx, leave := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		running.Go(func() { inst.Run(ctx) })
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/events", nil)
		r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0
		w := &late{httptest.NewRecorder(), ctx, make(chan struct{}), make(chan bool, 10)}
		go func() {
			defer close(w.returned)
			httpapi.New(httpapi.Config{Service: inst}).ServeHTTP(w, r)
		}()
		synctest.Wait() // the stream is silent
		leave()
		if <-w.touched {
			t.Error("the handler returned while the deadline was being set")
		}
		<-w.returned
	})
}
