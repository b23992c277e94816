package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// crowd notes that the limit on connections closes some of them. Their callers see only that a
// connection broke.
type crowd struct {
	log   *slog.Logger
	count func(context.Context) // the metric

	mu       sync.Mutex
	last     time.Time // guarded by mu
	logged   time.Time // guarded by mu
	unlogged int       // guarded by mu
}

// crowded is how long the service is degraded after a connection was closed, and how often that is
// logged.
const crowded = time.Minute

// displaced notes a closed connection.
func (c *crowd) displaced() {
	c.count(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = time.Now()
	c.unlogged++
	if c.logged.IsZero() || c.last.Sub(c.logged) >= crowded {
		c.log.Warn("connections are closed to make room for others; raise the limit of open files (ulimit -n), or add instances", "closed", c.unlogged)
		c.logged, c.unlogged = c.last, 0
	}
}

// degraded says what works worse than it should, or "".
func (c *crowd) degraded() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.IsZero() || time.Since(c.last) >= crowded {
		return ""
	}
	return fmt.Sprintf("connections are closed to make room for others, the last one within %v: this process may open no more files, so callers have to connect again", crowded)
}
