package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"regent/leadership/telemetry"
)

// newLog logs text if w is a terminal, and otherwise JSON in the form that Cloud Logging reads.
func newLog(w io.Writer) *slog.Logger { return newLogTo(w, isTerminal(w), "") }

// newLogTo is newLog for a writer that may wrap a terminal. project is the Google Cloud project of
// the traces; "" for none.
func newLogTo(w io.Writer, terminal bool, project string) *slog.Logger {
	if terminal {
		return slog.New(slog.NewTextHandler(w, nil))
	}
	return slog.New(telemetry.CloudLogging(w, project, nil))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// asyncWriter is a writer that never blocks. It buffers what its reader does not take and drops the
// rest: a process that enforces a deadline must not wait for the reader of a log.
type asyncWriter struct {
	lines   chan []byte
	drained chan struct{} // capacity 1: everything buffered before has been written
}

const (
	asyncLines = 256
	drainLimit = 200 * time.Millisecond
)

// newAsyncWriter returns an asyncWriter that writes to w until drain is called.
func newAsyncWriter(w io.Writer) *asyncWriter {
	s := &asyncWriter{lines: make(chan []byte, asyncLines), drained: make(chan struct{}, 1)}
	go func() {
		for line := range s.lines {
			if line == nil {
				s.drained <- struct{}{}
				return
			}
			w.Write(line)
		}
	}()
	return s
}

// Write buffers a line, or drops it if the buffer is full.
func (s *asyncWriter) Write(line []byte) (int, error) {
	select {
	case s.lines <- bytes.Clone(line):
	default:
	}
	return len(line), nil
}

// drain waits up to drainLimit until the buffered lines are written. Later lines are dropped.
func (s *asyncWriter) drain() {
	late := time.After(drainLimit)
	select {
	case s.lines <- nil:
	case <-late:
		return
	}
	select {
	case <-s.drained:
	case <-late:
	}
}

// minuteCounter counts events that are logged together, once a minute at most.
type minuteCounter struct {
	logged   time.Time
	unlogged int
}

// add counts one event. If a line is due now, it returns the number of events for that line, and
// otherwise 0.
func (c *minuteCounter) add(now time.Time) (due int) {
	c.unlogged++
	if !c.logged.IsZero() && now.Sub(c.logged) < time.Minute {
		return 0
	}
	due = c.unlogged
	c.logged, c.unlogged = now, 0
	return due
}

// serverLog takes the lines that net/http logs. Any caller can cause some of them by opening
// connections: of these it logs one a minute, with a count.
type serverLog struct {
	log *slog.Logger

	mu     sync.Mutex
	failed minuteCounter // guarded by mu
}

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
	starts := []string{"http: TLS handshake error ", "http2: server", "timeout waiting for "}
	return slices.ContainsFunc(starts, func(start string) bool { return strings.HasPrefix(line, start) })
}

// crowd records that connections were closed because of the limit on connections. Their callers
// only see that a connection broke.
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

// degraded returns the reason why the service is degraded, or "".
func (c *crowd) degraded() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.IsZero() || time.Since(c.last) >= crowded {
		return ""
	}
	return fmt.Sprintf("connections are closed to make room for others, the last one within %v: this process may open no more files, or has no memory for more connections, so callers have to connect again", crowded)
}
