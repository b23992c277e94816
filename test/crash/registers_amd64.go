//go:build linux

package crash

import "golang.org/x/sys/unix"

func alter(tid int, set func(*unix.PtraceRegs)) error {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &r); err != nil {
		return err
	}
	set(&r)
	return unix.PtraceSetRegs(tid, &r)
}

// skip keeps a call that begins from happening.
func skip(tid int) error {
	return alter(tid, func(r *unix.PtraceRegs) { r.Orig_rax = ^uint64(0) })
}

// shorten limits a write that begins to n bytes.
func shorten(tid, n int) error {
	return alter(tid, func(r *unix.PtraceRegs) { r.Rdx = uint64(n) })
}

// answer replaces the result of a call that has returned.
func answer(tid int, result int64) error {
	return alter(tid, func(r *unix.PtraceRegs) { r.Rax = uint64(result) })
}
