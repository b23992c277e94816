package httpapi

import (
	"net"
	"net/http"
	"testing"
)

// conn is a connection that records whether it was closed.
type conn struct {
	net.Conn
	name   string
	closed bool
}

func (c *conn) Close() error {
	c.closed = true
	return nil
}

func TestTheLongestSilentConnectionMakesRoom(t *testing.T) {
	t.Parallel()
	displaced := 0
	s := newConnections(3, func() { displaced++ })
	open := func(name string) *conn {
		c := &conn{name: name}
		s.changed(c, http.StateNew)
		return c
	}
	first, second, third := open("first"), open("second"), open("third")
	s.count(first, 1) // a call is under way
	fourth := open("fourth")
	if first.closed || !second.closed || third.closed || fourth.closed {
		t.Errorf("closed: %v %v %v %v; want the second, which waits for longest", first.closed, second.closed, third.closed, fourth.closed)
	}
	s.changed(second, http.StateClosed)
	s.count(first, -1) // it waits again, after the others
	s.count(third, 1)
	fifth := open("fifth")
	if !fourth.closed || first.closed || third.closed || fifth.closed {
		t.Errorf("closed: first %v, third %v, fourth %v, fifth %v; want the fourth", first.closed, third.closed, fourth.closed, fifth.closed)
	}
	s.changed(fourth, http.StateClosed)
	s.count(first, 1)
	s.count(fifth, 1)
	sixth := open("sixth")
	if sixth.closed || !third.closed || first.closed || fifth.closed {
		t.Error("where all have requests, the one that has been there for longest makes room")
	}
	s.count(third, -1) // its handler returns, too late
	s.changed(third, http.StateClosed)
	s.changed(first, http.StateClosed)
	seventh := open("seventh")
	if seventh.closed || sixth.closed || fifth.closed {
		t.Error("there was room for one more")
	}
	if len(s.places) != 3 || s.waiting.Len() != 2 || s.busy.Len() != 1 {
		t.Errorf("%d connections are remembered, %d of them as waiting, %d as busy", len(s.places), s.waiting.Len(), s.busy.Len())
	}
	if displaced != 3 {
		t.Errorf("%d closed connections were told of, want 3", displaced)
	}
	s.count(seventh, 1)
	s.count(seventh, -1) // its handler has returned, and the answer may not be written yet
	s.hurry()
	if !sixth.closed || fifth.closed || seventh.closed {
		t.Errorf("closed: %t, %t, %t; a stopping server must wait for calls and their answers, and for no connection without one", sixth.closed, fifth.closed, seventh.closed)
	}
}

func TestAConnectionWithOneOfTwoRequestsAnsweredIsNotSilent(t *testing.T) {
	t.Parallel()
	s := newConnections(2, func() {})
	both, silent := &conn{name: "both"}, &conn{name: "silent"}
	s.changed(both, http.StateNew)
	s.count(both, 1)
	s.count(both, 1) // HTTP/2
	s.changed(silent, http.StateNew)
	s.count(both, -1)
	s.changed(&conn{name: "third"}, http.StateNew)
	if both.closed || !silent.closed {
		t.Errorf("closed: %t and %t; want the one without a request", both.closed, silent.closed)
	}
	s.count(both, -1)
	s.changed(&conn{name: "fourth"}, http.StateNew)
	if both.closed {
		t.Error("it was silent for a shorter time than the third")
	}
}
