package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/wire"
)

// caller is a connection on which requests are written by hand.
type caller struct {
	*live
	net.Conn
	in *bufio.Reader
}

// newTaken serves an empty store, and takes connections over at once.
func newTaken(t *testing.T, c httpapi.Config) *live {
	t.Helper()
	return newLiveWith(t, c, takenAfter(time.Nanosecond))
}

func takenAfter(d time.Duration) func(*httpapi.HTTPServer) {
	return func(s *httpapi.HTTPServer) { s.TakeOverAfter(d) }
}

func (l *live) dial() caller {
	l.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(l.url, "http://"))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { conn.Close() })
	return caller{l, conn, bufio.NewReader(conn)}
}

const (
	waitRequest = "POST /v1/elections/planner:acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Request-Id: one\r\nContent-Length: 34\r\n\r\n" +
		`{"candidateId":"bob","wait":"60s"}`
	pollRequest   = "GET /v1/elections/planner?wait=60s HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: one\r\nIf-None-Match: \"1\"\r\n\r\n"
	streamRequest = "GET /v1/elections/planner/events HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: one\r\nAccept: text/event-stream\r\n\r\n"
	readRequest   = "GET /v1/elections/planner HTTP/1.1\r\nHost: localhost\r\n\r\n"
)

func (c caller) send(requests ...string) {
	c.t.Helper()
	if _, err := io.WriteString(c, strings.Join(requests, "")); err != nil {
		c.t.Fatal(err)
	}
}

// receive returns the next reply, whose body is not read yet.
func (c caller) receive() *http.Response {
	c.t.Helper()
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { r.Body.Close() })
	return r
}

// answered returns the status and the body of the next reply.
func (c caller) answered() (int, string) {
	c.t.Helper()
	r := c.receive()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

// want fails the test if the next reply has another status, or a body without the part.
func (c caller) want(status int, part string) {
	c.t.Helper()
	if got, body := c.answered(); got != status || !strings.Contains(body, part) {
		c.t.Errorf("%d %s; want %d and %s", got, body, status, part)
	}
}

// ends fails the test if the server does not close the connection.
func (c caller) ends(when string) {
	c.t.Helper()
	if b, err := c.in.ReadByte(); !errors.Is(err, io.EOF) {
		c.t.Errorf("%s: read %q, %v; want the end of the connection", when, b, err)
	}
}

// untilTaken blocks until so many connections are taken over.
func (l *live) untilTaken(n int) {
	l.until(func() bool { return l.server.Taken() == n })
}

func (l *live) until(done func() bool) {
	for !done() {
		time.Sleep(time.Millisecond)
	}
}

func TestAConnectionThatWasTakenOverServesFurtherCalls(t *testing.T) {
	t.Parallel()
	bothWays(t, furtherCalls)
}

func furtherCalls(t *testing.T, l *live) {
	c := l.dial()
	for round := range 3 {
		lease := l.lead("ann")
		c.send(waitRequest)
		l.untilTaken(1)
		l.release(lease)
		_, body := c.answered()
		if !strings.Contains(body, `"leaderId":"bob"`) {
			t.Fatalf("round %d: %s", round, body)
		}
		c.send("\r\n\r\n", readRequest) // some programs send an empty line after a body
		c.want(http.StatusOK, `"leaderId":"bob"`)
		l.untilTaken(0)
		if all, busy := l.server.Places(); all != 1 || busy > 1 {
			t.Errorf("%d connections have a place, %d of them with a request; want the same one as before", all, busy)
		}
		lease = leadership.LeaseRequest{Election: "planner", CandidateID: "bob", Token: leadership.Token(2 * (round + 1))}
		lease.Key = keyIn(t, body)
		l.release(lease)
	}
}

func keyIn(t *testing.T, body string) leadership.Key {
	t.Helper()
	_, text, _ := strings.Cut(body, `"key":"`)
	text, _, _ = strings.Cut(text, `"`)
	key, err := leadership.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A reply on a connection that was taken over has the header that net/http would have sent.
func TestATakenReplyHasTheSameHeader(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request string
		close   bool
	}{
		"wait":       {waitRequest, false},
		"long poll":  {pollRequest, false},
		"stream":     {streamRequest, false},
		"last of it": {strings.Replace(waitRequest, "X-Request-Id: one", "X-Request-Id: one\r\nConnection: close", 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var headers [2]http.Header
			var bodies [2]string
			for i, after := range []time.Duration{time.Hour, time.Nanosecond} {
				l := newLiveWith(t, httpapi.Config{StreamLimit: time.Second}, takenAfter(after))
				lease := l.lead("ann")
				caller := l.dial()
				caller.send(c.request)
				if after < time.Hour {
					l.untilTaken(1)
				} else {
					<-l.waiting
					l.until(func() bool { _, busy := l.server.Places(); return busy == 1 })
				}
				l.release(lease)
				r := caller.receive()
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Fatal(err)
				}
				if r.Close != c.close {
					t.Errorf("taken after %v: the connection is to be closed: %t, want %t", after, r.Close, c.close)
				}
				if c.close {
					caller.ends("after its last call")
				}
				if _, err := http.ParseTime(r.Header.Get("Date")); err != nil {
					t.Errorf("taken after %v: Date %v", after, err)
				}
				headers[i], bodies[i] = r.Header, fmt.Sprint(r.StatusCode, r.TransferEncoding, r.ContentLength == int64(len(body)), len(body) > 0)
				headers[i].Set("Date", "now")
				headers[i].Set("Content-Length", fmt.Sprint(len(headers[i]["Content-Length"])))
				headers[i].Del("X-Served-By")
			}
			if !maps.EqualFunc(headers[0], headers[1], slices.Equal) || bodies[0] != bodies[1] {
				t.Errorf("net/http sends %v %v, a connection that was taken over %v %v", headers[0], bodies[0], headers[1], bodies[1])
			}
		})
	}
}

func TestCallsSentAheadAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	for name, together := range map[string]bool{"at once": true, "while the first waits": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTaken(t, httpapi.Config{})
			lease := l.lead("ann")
			c := l.dial()
			if together {
				c.send(waitRequest, readRequest, readRequest)
				l.untilTaken(1)
			} else {
				c.send(waitRequest)
				l.untilTaken(1)
				c.send(readRequest, readRequest)
			}
			l.release(lease)
			c.want(http.StatusOK, `"key"`)
			c.want(http.StatusOK, `"leaderId":"bob"`)
			c.want(http.StatusOK, `"leaderId":"bob"`)
		})
	}
}

func TestAStreamGoesOnWhenItsConnectionIsTakenOver(t *testing.T) {
	t.Parallel()
	l := newLiveWith(t, httpapi.Config{StreamLimit: 5 * time.Second}, takenAfter(100*time.Millisecond))
	lease := l.lead("ann")
	c := l.dial()
	c.send(streamRequest)
	s := reader{l.t, nil, c.receive()} // the header comes from net/http
	s.Scanner = bufio.NewScanner(s.response.Body)
	s.want("snapshot", "1", "ann")
	l.untilTaken(1)
	l.release(lease)
	s.want("", "2", "released")
	s.want("end", "2", `{"reason":"limit"}`)
	if _, more := s.next(); more || s.Err() != nil {
		t.Errorf("after the end: %t, %v", more, s.Err())
	}
	c.send(readRequest)
	c.want(http.StatusOK, `"state":"vacant"`)
}

func TestADisconnectedWaiterWhoseConnectionWasTakenOverIsNeverGrantedALease(t *testing.T) {
	t.Parallel()
	bothWays(t, disconnectedWaiter)
}

// bothWays runs the test with the ways in which connections that are taken over can be watched.
func bothWays(t *testing.T, test func(*testing.T, *live)) {
	t.Run("together", func(t *testing.T) {
		t.Parallel()
		test(t, newTaken(t, httpapi.Config{}))
	})
	t.Run("one by one", func(t *testing.T) {
		t.Parallel()
		test(t, newLiveWith(t, httpapi.Config{}, func(s *httpapi.HTTPServer) {
			s.TakeOverAfter(time.Nanosecond)
			s.WatchOneByOne()
		}))
	})
}

func disconnectedWaiter(t *testing.T, l *live) {
	lease := l.lead("ann")
	gone, stays := l.dial(), l.dial()
	gone.send(waitRequest)
	l.untilTaken(1)
	stays.send(strings.Replace(waitRequest, "bob", "cyd", 1))
	l.untilTaken(2)
	gone.Close()
	l.untilTaken(1)
	l.release(lease)
	stays.want(http.StatusOK, `"leaderId":"cyd"`)
	if all, _ := l.server.Places(); all != 1 {
		t.Errorf("%d connections have a place, want 1", all)
	}
}

func TestAServerThatShutsDownWaitsForCallsOnTakenConnections(t *testing.T) {
	t.Parallel()
	l := newTaken(t, httpapi.Config{})
	lease := l.lead("ann")
	silent, waits, streams := l.dial(), l.dial(), l.dial()
	silent.send(pollRequest)
	l.untilTaken(1)
	l.release(lease)
	silent.want(http.StatusOK, `"state":"vacant"`)
	l.lead("ann")
	waits.send(waitRequest)
	l.untilTaken(2)
	streams.send(streamRequest)
	l.untilTaken(3)
	down := make(chan error, 1)
	go func() { down <- l.server.Shutdown(t.Context()) }()
	silent.ends("a server that stops")
	select {
	case err := <-down:
		t.Fatalf("%v, before the calls were answered", err)
	case <-time.After(50 * time.Millisecond):
	}
	l.instance.Drain(t.Context(), wire.Draining)
	r := waits.receive()
	if r.StatusCode != http.StatusServiceUnavailable || !r.Close {
		t.Errorf("status %d, the connection is to be closed: %t", r.StatusCode, r.Close)
	}
	streams.want(http.StatusOK, "event: end\nid: 3\n"+`data: {"reason":"draining"}`)
	streams.ends("after its stream")
	if err := <-down; err != nil {
		t.Error(err)
	}
}

func TestAServerThatDoesNotComeToItsEndClosesTakenConnections(t *testing.T) {
	t.Parallel()
	l := newTaken(t, httpapi.Config{})
	l.lead("ann")
	c := l.dial()
	c.send(waitRequest)
	l.untilTaken(1)
	late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := l.server.Shutdown(late); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want that there was no time left", err)
	}
	l.server.Close()
	c.ends("a server that was closed")
	l.untilTaken(0)
}

func TestATakenConnectionWithoutACallIsClosedAfterTheIdleTimeout(t *testing.T) {
	t.Parallel()
	l := newLiveWith(t, httpapi.Config{}, func(s *httpapi.HTTPServer) {
		s.TakeOverAfter(time.Nanosecond)
		s.IdleTimeout = 50 * time.Millisecond
	})
	lease := l.lead("ann")
	c := l.dial()
	c.send(pollRequest)
	l.untilTaken(1)
	l.release(lease)
	c.want(http.StatusOK, `"state":"vacant"`)
	c.ends("after the timeout")
	l.untilTaken(0)
	if all, _ := l.server.Places(); all != 0 {
		t.Errorf("%d connections have a place, want none", all)
	}
}

func TestAReaderOfATakenStreamThatStopsReadingIsDisconnected(t *testing.T) {
	t.Parallel()
	l := newTaken(t, httpapi.Config{StallTimeout: 50 * time.Millisecond})
	lease := l.lead("ann")
	s := l.stream("/v1/elections/planner/events")
	s.want("snapshot", "1", "ann")
	l.untilTaken(1)
	for i := range 5000 {
		r := leadership.AcquireRequest{Election: "planner", CandidateID: "ann", Key: &lease.Key, Metadata: fmt.Appendf(nil, `{"n":%d}`, i)}
		if _, err := l.instance.Acquire(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	l.untilTaken(0)
}

// So it does not make room for another connection, and a server that shuts down waits for it.
func TestAConnectionOnWhichABodyIsOnItsWayIsNotSilent(t *testing.T) {
	t.Parallel()
	l := newTaken(t, httpapi.Config{})
	c := l.dial()
	request := strings.Replace(waitRequest, `"wait":"60s"`, `"note":"60s"`, 1)
	c.send(request[:len(request)-5])
	l.until(func() bool {
		_, busy := l.server.Places()
		return busy == 1
	})
	c.send(request[len(request)-5:])
	c.want(http.StatusOK, `"leaderId":"bob"`)
}

func TestABodyThatIsOnItsWayIsNotTakenFromNetHTTP(t *testing.T) {
	t.Parallel()
	l := newTaken(t, httpapi.Config{})
	c := l.dial()
	half := len(waitRequest) - 10
	c.send(waitRequest[:half])
	time.Sleep(20 * time.Millisecond)
	if n := l.server.Taken(); n != 0 {
		t.Errorf("%d connections are taken over", n)
	}
	c.send(waitRequest[half:])
	c.want(http.StatusOK, `"leaderId":"bob"`)
}
