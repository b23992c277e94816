package httpapi

import (
	"maps"
	"time"

	"github.com/go-chi/chi/v5"

	"regent/leadership/wire"
)

// Route is what New does with the rows, and with the handlers but for those left out.
func Route(rows []wire.Row, without ...wire.Verb) error {
	a := &api{router: chi.NewRouter()}
	all := maps.Clone(a.handlers())
	for _, verb := range without {
		delete(all, verb)
	}
	return a.route(rows, all)
}

// TakeOverAfter sets after what time a connection is taken over.
func (s *HTTPServer) TakeOverAfter(d time.Duration) { s.long.after = d }

// WatchOneByOne has connections that are taken over watched by a goroutine each, as on systems
// without epoll.
func (s *HTTPServer) WatchOneByOne() { s.long.arrivals.close() }

// Taken returns how many connections are taken over.
func (s *HTTPServer) Taken() int {
	s.long.mu.Lock()
	defer s.long.mu.Unlock()
	return len(s.long.taken)
}

// Places returns how many connections are remembered, and how many of them have a request.
func (s *HTTPServer) Places() (all, busy int) {
	s.long.open.mu.Lock()
	defer s.long.open.mu.Unlock()
	return len(s.long.open.places), s.long.open.busy.Len()
}
