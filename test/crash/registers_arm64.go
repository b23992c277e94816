//go:build linux

package crash

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const generalRegisters = 1 // NT_PRSTATUS

func alter(tid int, set func(*unix.PtraceRegsArm64)) error {
	var r unix.PtraceRegsArm64
	if err := unix.PtraceGetRegSetArm64(tid, generalRegisters, &r); err != nil {
		return err
	}
	set(&r)
	return unix.PtraceSetRegSetArm64(tid, generalRegisters, &r)
}

// skip keeps a call that begins from happening.
func skip(tid int) error {
	number := int32(-1)
	v := unix.Iovec{Base: (*byte)(unsafe.Pointer(&number)), Len: uint64(unsafe.Sizeof(number))}
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SETREGSET,
		uintptr(tid), unix.NT_ARM_SYSTEM_CALL, uintptr(unsafe.Pointer(&v)), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// shorten limits a write that begins to n bytes.
func shorten(tid, n int) error {
	return alter(tid, func(r *unix.PtraceRegsArm64) { r.Regs[2] = uint64(n) })
}

// answer replaces the result of a call that has returned.
func answer(tid int, result int64) error {
	return alter(tid, func(r *unix.PtraceRegsArm64) { r.Regs[0] = uint64(result) })
}
