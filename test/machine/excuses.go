package machine

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// Excuses counts failures that a test forgives because the machine is busy: a step that came too
// late, a run that is drawn anew, a call whose answer was lost. It forgives one in twenty attempts,
// or three if that is more. A breach of safety is never forgiven. The zero value is ready to use.
type Excuses struct {
	mu       sync.Mutex // guards all below
	attempts int
	made     []string
}

// Attempt counts n attempts that could have needed an excuse.
func (e *Excuses) Attempt(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.attempts += n
}

// Excuse counts an excuse, with its reason.
func (e *Excuses) Excuse(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.made = append(e.made, fmt.Sprintf(format, args...))
}

// Redo calls do, with the number of the attempt, and repeats it while it is late, until there are
// too many excuses.
func (e *Excuses) Redo(do func(n int) (late error)) {
	for n := 0; ; n++ {
		e.Attempt(1)
		late := do(n)
		if late == nil {
			return
		}
		if e.Excuse("%v", late); e.Err() != nil {
			return
		}
	}
}

// Made returns the number of excuses.
func (e *Excuses) Made() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.made)
}

// Err returns an error if there were too many.
func (e *Excuses) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if most := max(3, e.attempts/20); len(e.made) > most {
		return fmt.Errorf("%d excuses in %d attempts, and %d are the most:\n%s", len(e.made), e.attempts, most, strings.Join(e.made[:min(20, len(e.made))], "\n"))
	}
	return nil
}

// Check logs the excuses, and fails the test if there were too many.
func (e *Excuses) Check(t testing.TB) {
	t.Helper()
	if err := e.Err(); err != nil {
		t.Error(err)
	} else if made := e.Made(); made > 0 {
		t.Logf("%d excuses in %d attempts: %s", made, e.attempts, strings.Join(e.made, "; "))
	}
}
