package proxy

import (
	"context"
	"path"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Gate passes gRPC calls on to a server, except those of the methods that are shut: a part of the
// service is unavailable over a working connection. All methods may be called at any time from any
// goroutine.
type Gate struct {
	*relay

	mu    sync.Mutex // guards all below
	shut  []string
	under map[context.Context]call // the calls under way
}

// call is one call under way.
type call struct {
	method string
	end    context.CancelCauseFunc
}

// errShut is the error of calls of a method that is shut.
var errShut = status.Error(codes.Unavailable, "the gate is shut")

// NewGate returns a gate in front of the gRPC server at host:port, which uses no TLS. It listens on
// a loopback port of its own until Close.
func NewGate(target string) (*Gate, error) {
	g := &Gate{under: make(map[context.Context]call)}
	r, err := newRelay(target, g.admit)
	g.relay = r
	return g, err
}

// Shut fails all calls of the methods, named by the last parts of their names, with UNAVAILABLE:
// those under way, and new ones until Open.
func (g *Gate) Shut(methods ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = methods
	for _, c := range g.under {
		if slices.Contains(methods, c.method) {
			c.end(errShut)
		}
	}
}

// Open passes all calls on again.
func (g *Gate) Open() { g.Shut() }

func (g *Gate) admit(ctx context.Context, method string) (context.Context, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	method = path.Base(method)
	if slices.Contains(g.shut, method) {
		return nil, errShut
	}
	passing, end := context.WithCancelCause(ctx)
	g.under[passing] = call{method, end}
	context.AfterFunc(ctx, func() { // pass ends ctx with the call
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.under, passing)
		end(nil)
	})
	return passing, nil
}
