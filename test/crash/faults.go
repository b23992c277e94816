package crash

import (
	"fmt"
	"syscall"
)

// effect is what happens to a call instead of what was asked for. The zero effect is nothing.
type effect struct {
	errno syscall.Errno // the call does nothing, and fails
	short bool          // a write ends half way, at the end of a sector; if it is within one, it fails
}

// target is the calls of a kind on a file; "" stands for the folder. Those on one file have the
// same order in every run, though several threads make calls.
type target struct {
	kind kind
	file string
}

func (t target) nth(n int) string {
	return fmt.Sprintf("%s number %d of %q", t.kind, n, t.file)
}

// faults says what happens to the calls on files of one run. The zero value is nothing.
type faults struct {
	on     target
	at     int    // the first call on it that is affected, from 1; 0 for none
	effect effect // of that call
	after  effect // of all later calls, on every file

	count int
}

// next is what happens to the next call.
func (f *faults) next(t target) effect {
	if f.at > 0 && f.count < f.at {
		if t == f.on {
			f.count++
		}
		if t == f.on && f.count == f.at {
			return f.effect
		}
		return effect{}
	}
	if f.at == 0 || t.kind != wrote && t.kind != resized { // a full disk can still be synced, and names can be removed
		return effect{}
	}
	return f.after
}

func (f faults) String() string {
	text := "it ends half way"
	if f.effect.errno != 0 {
		text = f.effect.errno.Error()
	}
	if f.after.errno != 0 {
		text += fmt.Sprintf(", and all writes after it fail (%v)", f.after.errno)
	}
	return text
}
