package process

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Log is the output of a program so far. It is safe for concurrent use.
type Log struct {
	mu     sync.Mutex // guards all below
	text   strings.Builder
	more   chan struct{} // closed at the next change
	closed bool
}

// NewLog returns an empty log.
func NewLog() *Log { return &Log{more: make(chan struct{})} }

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed()
	return l.text.Write(p)
}

// Close says that nothing more will be written.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.changed()
	return nil
}

// changed wakes all that wait. Call with mu held.
func (l *Log) changed() {
	close(l.more)
	l.more = make(chan struct{})
}

// String returns all that was written.
func (l *Log) String() string {
	text, _, _ := l.now()
	return text
}

func (l *Log) now() (text string, more <-chan struct{}, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String(), l.more, l.closed
}

// Await is Find for a test: it fails the test if there is no such line.
func (l *Log) Await(t testing.TB, message string) map[string]any {
	t.Helper()
	fields, err := l.Find(t.Context(), message)
	require.NoError(t, err)
	return fields
}

// Find waits for a line of JSON with that message, and returns the fields of the first one. It is
// an error if the log, or ctx, ends without it.
func (l *Log) Find(ctx context.Context, message string) (map[string]any, error) {
	for seen := 0; ; {
		text, more, closed := l.now()
		for line := range strings.Lines(text[seen:]) {
			if !strings.HasSuffix(line, "\n") {
				break
			}
			seen += len(line)
			var fields map[string]any
			if json.Unmarshal([]byte(line), &fields) == nil && (fields["message"] == message || fields["msg"] == message) {
				return fields, nil
			}
		}
		if closed {
			return nil, fmt.Errorf("the log ends without %q:\n%s", message, text)
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, fmt.Errorf("the log is without %q:\n%s", message, text)
		}
	}
}
