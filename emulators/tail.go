package emulators

import (
	"io"
	"strings"
	"sync"
)

// tail passes an emulator's output on, keeps the last few kilobytes, and notices the complaint that
// the port is taken.
type tail struct {
	log       io.Writer // may be nil
	portTaken chan struct{}

	mu    sync.Mutex // guards the fields below
	last  string
	taken bool
}

func newTail(log io.Writer) *tail { return &tail{log: log, portTaken: make(chan struct{})} }

// Write never returns an error: a log whose reader is gone must not end the emulator.
func (t *tail) Write(p []byte) (int, error) {
	t.keep(string(p))
	if t.log != nil {
		_, _ = t.log.Write(p)
	}
	return len(p), nil
}

func (t *tail) keep(text string) {
	const kept = 4 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last += text
	if !t.taken && complainsOfPort(t.last) {
		t.taken = true
		close(t.portTaken)
	}
	t.last = t.last[max(0, len(t.last)-kept):]
}

// complainsOfPort recognises the messages of the JVM, of gateway_main and of Spanner's
// emulator_main.
func complainsOfPort(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, "address already in use") || strings.Contains(text, "failed to bind to address")
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}
