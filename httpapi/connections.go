package httpapi

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// connections keeps a server from having more of them than it may: one too many, and the one that has been without a request for longest is
// closed. So whoever opens connections and says nothing takes the place of others who say nothing, and neither that of a call under way nor
// the files that the process needs for its store. A caller whose connection was closed between two calls opens another one.
type connections struct {
	most int

	mu      sync.Mutex                 // guards what follows
	waiting list.List                  // of net.Conn, whose request is not there yet; the longest first
	places  map[net.Conn]*list.Element // among those that wait; nil for one with a request
}

func newConnections(most int) *connections {
	return &connections{most: most, places: map[net.Conn]*list.Element{}}
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
		s.leave(c)
		delete(s.places, c)
	}
}

// add takes a connection in, and returns the one that it is for to go.
func (s *connections) add(c net.Conn) (surplus net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places[c] = s.waiting.PushBack(c)
	if len(s.places) <= s.most {
		return nil
	}
	surplus = s.waiting.Front().Value.(net.Conn) // the new one, if all others have requests
	s.leave(surplus)
	delete(s.places, surplus)
	return surplus
}

// leave takes the connection from those that wait, with the mutex held.
func (s *connections) leave(c net.Conn) {
	if place := s.places[c]; place != nil {
		s.waiting.Remove(place)
		s.places[c] = nil
	}
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

func (s *connections) begin(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(c)
}

func (s *connections) end(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if place, here := s.places[c]; here && place == nil {
		s.places[c] = s.waiting.PushBack(c)
	}
}
