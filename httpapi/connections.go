package httpapi

import (
	"container/list"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
)

// connections limits the connections of a server. One too many closes the connection that has been
// without a request for the longest time or, if there is none, the one whose request has taken the
// longest.
//
// So silent connections displace silent ones, and slow calls (bodies that do not arrive, replies
// that are not read, waiting candidates, streams) displace slow ones; a renewal is too short to be
// displaced. A caller whose connection was closed opens another: streams and waiting candidates
// resume.
type connections struct {
	most      int
	displaced func() // called for each connection that made room

	mu      sync.Mutex // guards the fields below
	waiting list.List  // of net.Conn without a request, the longest first
	busy    list.List  // of net.Conn with a request, the longest first
	places  map[net.Conn]*place
}

// place is the place of a connection in one of the lists.
type place struct {
	among    *list.List
	at       *list.Element
	requests int       // under way; HTTP/2 may have several
	owner    io.Closer // of a connection that was taken over from net/http; else nil
}

// closer returns the owner of a connection that was taken over, else the connection. Call with mu
// held.
func (s *connections) closer(c net.Conn) io.Closer {
	if owner := s.places[c].owner; owner != nil {
		return owner
	}
	return c
}

// own sets the owner of a connection; nil: net/http.
func (s *connections) own(c net.Conn, owner io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, here := s.places[c]; here {
		p.owner = owner
	}
}

func newConnections(most int, displaced func()) *connections {
	return &connections{most: most, displaced: displaced, places: map[net.Conn]*place{}}
}

// LimitConnections limits the connections of a server. Server has a limit already. displaced is
// called for each connection that was closed to make room, and must not block.
func LimitConnections(server *http.Server, most int, displaced func()) {
	server.Handler = limited(server, most, displaced).serve(server.Handler)
}

// limited limits the connections of a server, whose handler must say when it begins and ends.
func limited(server *http.Server, most int, displaced func()) *connections {
	open := newConnections(most, displaced)
	server.ConnState, server.ConnContext = open.changed, open.know
	server.RegisterOnShutdown(open.hurry)
	return open
}

// changed is http.Server.ConnState. A connection that is taken over keeps its place until drop.
func (s *connections) changed(c net.Conn, state http.ConnState) {
	switch c = plain(c); state {
	case http.StateNew:
		if surplus := s.add(c); surplus != nil {
			surplus.Close()
			s.displaced()
		}
	case http.StateClosed:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.remove(c)
	}
}

// drop closes a connection that was taken over.
func (s *connections) drop(c net.Conn) {
	c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(c)
}

// add adds a connection and returns the one to close instead, if there is one. One that net/http
// gets back has its place.
func (s *connections) add(c net.Conn) (surplus io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, here := s.places[c]; here {
		return nil
	}
	if len(s.places) >= s.most {
		longest := s.waiting.Front()
		if longest == nil {
			longest = s.busy.Front()
		}
		first := longest.Value.(net.Conn)
		surplus = s.closer(first)
		s.remove(first)
	}
	s.places[c] = &place{among: &s.waiting, at: s.waiting.PushBack(c)}
	return surplus
}

// remove removes the connection. Call with mu held.
func (s *connections) remove(c net.Conn) {
	if p, here := s.places[c]; here {
		p.among.Remove(p.at)
		delete(s.places, c)
	}
}

// hurry closes connections without a request, so that a server that stops need not wait for them.
func (s *connections) hurry() {
	for _, c := range s.silent() {
		c.Close()
	}
}

func (s *connections) silent() (all []io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.waiting.Front(); e != nil; e = e.Next() {
		all = append(all, s.closer(e.Value.(net.Conn)))
	}
	return all
}

// connectionKey is the context key of a request's *connection.
type connectionKey struct{}

// connection is the connection of a request, and the context of all calls of the server.
type connection struct {
	net.Conn
	ctx context.Context
}

// know is http.Server.ConnContext.
func (s *connections) know(ctx context.Context, c net.Conn) context.Context {
	on := &connection{Conn: plain(c)}
	on.ctx = context.WithValue(ctx, connectionKey{}, on)
	return on.ctx
}

// serve wraps the handler. A connection counts as waiting from its return, although a part of the
// body may still arrive.
func (s *connections) serve(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if on, known := r.Context().Value(connectionKey{}).(*connection); known {
			s.begin(on.Conn)
			defer s.end(on.Conn)
		}
		h.ServeHTTP(w, r)
	})
}

func (s *connections) begin(c net.Conn) { s.count(c, 1) }
func (s *connections) end(c net.Conn)   { s.count(c, -1) }

// count puts a connection that still exists at the end of the other list if its first request has
// come, or its last one is answered.
func (s *connections) count(c net.Conn, change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, here := s.places[c]
	if !here {
		return
	}
	p.requests += change
	among := &s.waiting
	if p.requests > 0 {
		among = &s.busy
	}
	if p.among != among {
		p.among.Remove(p.at)
		p.among, p.at = among, among.PushBack(c)
	}
}
