package httpapi

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// connections limits the connections of a server. A new connection beyond the limit closes the one
// that has been without a request for the longest time or, if all have requests, the one whose
// request has taken the longest.
//
// So silent connections displace silent ones, and slow calls (bodies that do not arrive, replies
// that are not read, waiting candidates, streams) displace slow ones; a renewal is too short to be
// displaced. A caller whose connection was closed opens another: streams and waiting candidates
// resume.
type connections struct {
	most      int
	displaced func() // called for each connection that made room

	mu      sync.Mutex // guards the fields below
	waiting list.List  // of net.Conn without a request, longest waiting first
	busy    list.List  // of net.Conn with a request, longest busy first
	places  map[net.Conn]*place
}

// place is the place of a connection in one of the lists.
type place struct {
	among    *list.List
	at       *list.Element
	requests int // under way; HTTP/2 may have several
	used     bool
}

func newConnections(most int, displaced func()) *connections {
	return &connections{most: most, displaced: displaced, places: map[net.Conn]*place{}}
}

// LimitConnections limits the connections of a server. Server has a limit already. displaced is
// called for each connection that was closed to make room, and must not block.
func LimitConnections(server *http.Server, most int, displaced func()) {
	open := newConnections(most, displaced)
	server.ConnState, server.ConnContext = open.changed, know
	server.RegisterOnShutdown(open.hurry)
	server.Handler = open.serve(server.Handler)
}

// changed implements http.Server.ConnState.
func (s *connections) changed(c net.Conn, state http.ConnState) {
	switch state {
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

// add adds a connection and returns the one to close instead; nil: none.
func (s *connections) add(c net.Conn) (surplus net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.places) >= s.most {
		longest := s.waiting.Front()
		if longest == nil {
			longest = s.busy.Front()
		}
		surplus = longest.Value.(net.Conn)
		s.remove(surplus)
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

// hurry closes connections that have had no request yet, so that a server that stops need not wait
// for them. The others it closes itself, once the answer of the last request is written: that is
// after the handler has returned.
func (s *connections) hurry() {
	for _, c := range s.silent() {
		c.Close() // not with mu held: with TLS it may take a while
	}
}

func (s *connections) silent() (all []net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, p := range s.places {
		if !p.used {
			all = append(all, c)
		}
	}
	return all
}

// connectionKey is the context key of a request's net.Conn.
type connectionKey struct{}

// know implements http.Server.ConnContext.
func know(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// serve wraps the handler. A connection counts as waiting from its return, although a part of the
// body may still arrive.
func (s *connections) serve(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, known := r.Context().Value(connectionKey{}).(net.Conn); known {
			s.count(c, 1)
			defer s.count(c, -1)
		}
		h.ServeHTTP(w, r)
	})
}

// count adds change to a connection's requests. It moves the connection to the end of the other
// list if its first request has come or its last one was answered.
func (s *connections) count(c net.Conn, change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, here := s.places[c]
	if !here {
		return
	}
	p.requests += change
	p.used = true
	among := &s.waiting
	if p.requests > 0 {
		among = &s.busy
	}
	if p.among != among {
		p.among.Remove(p.at)
		p.among, p.at = among, among.PushBack(c)
	}
}
