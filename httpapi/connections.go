package httpapi

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// connections keeps a server from having more of them than it may: one too many, and the one that has been without a request for longest is
// closed, or if there is none, the one whose request has been there for longest. So whoever opens connections and says nothing takes the place of
// others who say nothing; whoever holds on to them, by bodies that do not come, by replies that are not read, by lines and streams, takes the place of
// others who hold on; and a renewal, which is over in no time, takes nobody's and loses its own to nobody. A caller whose connection was closed
// opens another one: streams and lines are resumed.
type connections struct {
	most int

	mu      sync.Mutex // guards what follows
	waiting list.List  // of net.Conn, whose request is not there yet; the longest first
	busy    list.List  // of net.Conn, whose request is there; the longest first
	places  map[net.Conn]place
}

// place is where a connection is among the others.
type place struct {
	among *list.List
	at    *list.Element
}

func newConnections(most int) *connections {
	return &connections{most: most, places: map[net.Conn]place{}}
}

// LimitConnections keeps a server from having more connections than that. Server has a limit already.
func LimitConnections(server *http.Server, most int) {
	open := newConnections(most)
	server.Handler, server.ConnState, server.ConnContext = open.serve(server.Handler), open.changed, open.know
	server.RegisterOnShutdown(open.hurry)
}

// changed is http.Server's ConnState.
func (s *connections) changed(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if surplus := s.add(c); surplus != nil {
			surplus.Close()
		}
	case http.StateClosed, http.StateHijacked:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.remove(c)
	}
}

// add takes a connection in, and returns the one that it is for to go.
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
	s.put(c, &s.waiting)
	return surplus
}

func (s *connections) put(c net.Conn, among *list.List) {
	s.places[c] = place{among, among.PushBack(c)}
}

// remove takes the connection out, with the mutex held.
func (s *connections) remove(c net.Conn) {
	if p, here := s.places[c]; here {
		p.among.Remove(p.at)
		delete(s.places, c)
	}
}

// hurry closes what has no request: nobody waits for an answer there, and a server that stops does not wait for it.
func (s *connections) hurry() {
	for _, c := range s.silent() {
		c.Close()
	}
}

func (s *connections) silent() (all []net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.waiting.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(net.Conn))
	}
	return all
}

// connectionKey is of the context of a request.
type connectionKey struct{}

// know is http.Server's ConnContext.
func (s *connections) know(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// serve is the handler; a connection waits again from its return, though some of a body may still be to come.
func (s *connections) serve(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := r.Context().Value(connectionKey{}).(net.Conn)
		s.begin(c)
		defer s.end(c)
		h.ServeHTTP(w, r)
	})
}

func (s *connections) begin(c net.Conn) { s.move(c, &s.busy) }
func (s *connections) end(c net.Conn)   { s.move(c, &s.waiting) }

// move puts a connection that is still here last among others.
func (s *connections) move(c net.Conn, among *list.List) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, here := s.places[c]; here {
		s.remove(c)
		s.put(c, among)
	}
}
