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

	mu     sync.Mutex
	last   time.Time     // guarded by mu
	repeat minuteCounter // guarded by mu
}

// crowded is how long the service is degraded after a connection was closed.
const crowded = time.Minute

func (c *crowd) displaced() {
	c.count(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = time.Now()
	if closed := c.repeat.add(c.last); closed > 0 {
		c.log.Warn("connections are closed to make room for others; raise the limit of open files (ulimit -n) or of memory (GOMEMLIMIT, or the container's), whichever is lower here, or add instances", "closed", closed)
	}
}

// degraded says what works worse than it should, or "".
func (c *crowd) degraded() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.IsZero() || time.Since(c.last) >= crowded {
		return ""
	}
	return fmt.Sprintf("connections are closed to make room for others, the last one within %v: this process may open no more files, or has no memory for more connections, so callers have to connect again", crowded)
}
