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

// skip lets a call that begins not happen.
func skip(tid int) error {
	return alter(tid, func(r *unix.PtraceRegs) { r.Orig_rax = ^uint64(0) })
}

// shorten lets a write that begins have n bytes.
func shorten(tid, n int) error {
	return alter(tid, func(r *unix.PtraceRegs) { r.Rdx = uint64(n) })
}

// answer lets a call that has returned have returned the result.
func answer(tid int, result int64) error {
	return alter(tid, func(r *unix.PtraceRegs) { r.Rax = uint64(result) })
}
