package storetest

import (
	"context"
	"path"
	"sync"

	"google.golang.org/grpc/stats"
)

// RPCs records the names of the calls that a gRPC client begins, so that a test can check the cost
// of an operation. It is a stats.Handler.
type RPCs struct {
	mu    sync.Mutex
	names []string // guarded by mu
}

// TagRPC implements stats.Handler.
func (c *RPCs) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = append(c.names, path.Base(info.FullMethodName))
	return ctx
}

// HandleRPC implements stats.Handler.
func (c *RPCs) HandleRPC(context.Context, stats.RPCStats) {}

// TagConn implements stats.Handler.
func (c *RPCs) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (c *RPCs) HandleConn(context.Context, stats.ConnStats) {}

// Take returns the names since the last time, in the order in which the calls began.
func (c *RPCs) Take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.names
	c.names = nil
	return taken
}
