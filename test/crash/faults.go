package crash

import (
	"fmt"
	"syscall"
)

// effect is what happens to a call instead of what was asked for. The zero effect is nothing.
type effect struct {
	errno syscall.Errno // the call does nothing, and fails
	short bool          // a write ends half way
	lie   bool          // the call does nothing, and succeeds
}

func (e effect) skips() bool { return e.errno != 0 || e.lie }

// faults says what happens to the calls on files of one run. The zero value is nothing.
type faults struct {
	at     int    // the first call that is affected, from 1; 0 for none
	effect effect // of that call
	after  effect // of all later calls
	// unsynced lets every sync do nothing, and succeed.
	unsynced bool

	count int
}

// next is what happens to the next call.
func (f *faults) next(k kind) effect {
	f.count++
	switch {
	case f.unsynced && k == synced:
		return effect{lie: true}
	case f.at == 0 || f.count < f.at:
		return effect{}
	case f.count == f.at:
		return f.effect
	case k != wrote && k != resized: // a full disk can still be synced, and names can be removed
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
