package process

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
)

// Log is what a program has written so far. Several goroutines may use it.
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

// Await waits for a line with that message, and returns the fields of the first one. It fails the
// test if the log ends without it.
func (l *Log) Await(t testing.TB, message string) map[string]any {
	t.Helper()
	for seen := 0; ; {
		text, more, closed := l.now()
		for line := range strings.Lines(text[seen:]) {
			if !strings.HasSuffix(line, "\n") {
				break
			}
			seen += len(line)
			var fields map[string]any
			if json.Unmarshal([]byte(line), &fields) == nil && (fields["message"] == message || fields["msg"] == message) {
				return fields
			}
		}
		if closed {
			t.Fatalf("the log ends without %q:\n%s", message, text)
		}
		select {
		case <-more:
		case <-t.Context().Done():
			t.Fatalf("the log is without %q:\n%s", message, text)
		}
	}
}
