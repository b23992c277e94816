package main

import (
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// minuteCounter counts events that are logged together, once a minute at most.
type minuteCounter struct {
	logged   time.Time
	unlogged int
}

// add counts one more. It returns 0, or, if a line is due now, for how many it stands.
func (c *minuteCounter) add(now time.Time) (due int) {
	c.unlogged++
	if !c.logged.IsZero() && now.Sub(c.logged) < time.Minute {
		return 0
	}
	due = c.unlogged
	c.logged, c.unlogged = now, 0
	return due
}

// serverLog takes the lines that net/http logs. A stranger can cause some of them by opening
// connections: of these it logs one a minute, with a count.
type serverLog struct {
	log *slog.Logger

	mu     sync.Mutex
	failed minuteCounter // guarded by mu
}

// newServerLog returns a logger for http.Server.ErrorLog.
func newServerLog(to *slog.Logger) *log.Logger { return log.New(&serverLog{log: to}, "", 0) }

// Write implements io.Writer: p is one message.
func (l *serverLog) Write(p []byte) (int, error) {
	line := strings.TrimSuffix(string(p), "\n")
	if !causedByCaller(line) {
		l.log.Warn(line)
		return len(p), nil
	}
	l.mu.Lock()
	failed := l.failed.add(time.Now())
	l.mu.Unlock()
	if failed > 0 {
		l.log.Warn("callers break off or garble connections", "failed", failed, "last", line)
	}
	return len(p), nil
}

// causedByCaller reports whether the caller's end of a connection caused the line of net/http.
func causedByCaller(line string) bool {
	for _, start := range []string{"http: TLS handshake error ", "http2: server", "timeout waiting for "} {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	return false
}
