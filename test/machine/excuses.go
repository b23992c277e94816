package machine

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// Excuses counts what a test forgives because the machine is busy: a step that came too late, a
// run that is drawn anew, a call whose answer was lost. It forgives one in twenty attempts, and
// three if that is less. Safety is never forgiven. The zero value is ready.
type Excuses struct {
	mu       sync.Mutex // guards all below
	attempts int
	made     []string
}

// Attempt counts attempts that could have needed an excuse.
func (e *Excuses) Attempt(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.attempts += n
}

// Excuse counts one, and says what for.
func (e *Excuses) Excuse(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.made = append(e.made, fmt.Sprintf(format, args...))
}

// Redo does it anew each time that it was late, with the number of the attempt, until it was not or
// there were too many excuses.
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

// Made is how many there were.
func (e *Excuses) Made() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.made)
}

// Err is an error if there were too many.
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
