package emulators

import (
	"io"
	"strings"
	"sync"
)

// tail passes on what an emulator prints, keeps the last few kilobytes, and notices
// the complaint that the port is taken.
type tail struct {
	log       io.Writer // may be nil
	portTaken chan struct{}

	mu    sync.Mutex // guards what follows
	last  string
	taken bool
}

func newTail(log io.Writer) *tail { return &tail{log: log, portTaken: make(chan struct{})} }

// Write never returns an error: whoever reads the log must not be able to end the
// emulator by going away.
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

// complainsOfPort knows the words of the JVM and of gateway_main, and those of
// Spanner's emulator_main.
func complainsOfPort(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, "address already in use") || strings.Contains(text, "failed to bind to address")
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}
