//go:build linux && (amd64 || arm64)

package crash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tracer runs a process and sees each of its system calls when it begins and when it has returned.
// The calling thread stands still meanwhile, so later calls are logged later.
type tracer struct {
	dir    string // whose files are watched; without links in its path
	folder uint64 // its inode
	faults faults
	log    []entry
	calls  map[int]*call // by thread: what has begun and not returned
	seen   map[int]bool  // threads that have had their first stop
	bad    error         // the first call that was not understood
}

// trace runs the program, with its standard error going to the file, and returns what it did to the
// files in dir. It is an error if the program fails.
func trace(ctx context.Context, dir string, stderr *os.File, f faults, program string, args ...string) ([]entry, error) {
	var folder unix.Stat_t
	if err := unix.Stat(dir, &folder); err != nil {
		return nil, err
	}
	t := &tracer{dir: dir, folder: folder.Ino, faults: f, calls: make(map[int]*call), seen: make(map[int]bool)}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread is the tracer, and ends with this goroutine
		done <- t.run(ctx, stderr, program, args)
	}()
	err := <-done
	return t.log, err
}

func (t *tracer) run(ctx context.Context, stderr *os.File, program string, args []string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	p, err := os.StartProcess(program, append([]string{program}, args...), &os.ProcAttr{
		Env:   environment(),
		Files: []*os.File{null, null, stderr},
		Sys:   &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errNoTrace, err)
	}
	defer p.Release()
	stop := context.AfterFunc(ctx, func() { p.Kill() })
	defer stop()
	err = t.follow(p.Pid)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(err, t.bad)
}

const traceOptions = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_EXITKILL

// follow traces the process until it has ended.
func (t *tracer) follow(pid int) error {
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, 0, nil); err != nil || !status.Stopped() {
		return fmt.Errorf("%w: it did not stop (%v)", errNoTrace, err)
	}
	t.seen[pid] = true
	if err := unix.PtraceSetOptions(pid, traceOptions); err != nil {
		return fmt.Errorf("%w: %w", errNoTrace, err)
	}
	if err := unix.PtraceSyscall(pid, 0); err != nil {
		return fmt.Errorf("%w: %w", errNoTrace, err)
	}
	for {
		// Only children of this thread; other threads wait for their own.
		tid, err := unix.Wait4(-1, &status, unix.WALL|unix.WNOTHREAD, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case !status.Stopped():
			delete(t.calls, tid)
			if tid == pid {
				return ended(status)
			}
			continue
		}
		if err := unix.PtraceSyscall(tid, t.stopped(tid, status)); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
}

func ended(status unix.WaitStatus) error {
	if status.Exited() && status.ExitStatus() == 0 {
		return nil
	}
	if status.Signaled() {
		return fmt.Errorf("the process was ended by %v", status.Signal())
	}
	return fmt.Errorf("the process ended with code %d", status.ExitStatus())
}

// stopped looks at a stopped thread, and returns the signal to pass on to it.
func (t *tracer) stopped(tid int, status unix.WaitStatus) int {
	first := !t.seen[tid]
	t.seen[tid] = true
	switch sig := status.StopSignal(); {
	case sig == unix.SIGTRAP|0x80:
		t.bad = cmp.Or(t.bad, t.syscall(tid))
		return 0
	case sig == unix.SIGTRAP, sig == unix.SIGSTOP && first:
		return 0 // the tracer's own
	default:
		return int(sig)
	}
}

// syscallInfo is struct ptrace_syscall_info of Linux.
type syscallInfo struct {
	Op     uint8 // 1: a call begins, 2: it has returned
	_      [3]uint8
	Arch   uint32
	IP, SP uint64
	// when it begins: its number and six arguments; when it has returned: the result
	Values [8]uint64
}

func (t *tracer) syscall(tid int) error {
	var info syscallInfo
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid),
		unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	switch {
	case errno == unix.ESRCH:
		return nil // it was killed
	case errno != 0: // as in a sandbox that emulates the kernel
		return fmt.Errorf("%w: %w", errNoTrace, errno)
	case info.Op == 1:
		return t.begun(tid, info.Values[0], info.Values[1:7])
	case info.Op == 2:
		return t.returned(tid, int64(info.Values[0]))
	}
	return nil
}

// text reads a path from the process.
func text(tid int, at uint64) (string, error) {
	var path strings.Builder
	for {
		piece := make([]byte, 4096-at%4096) // what follows in the same page can be read
		if err := peek(tid, at, piece); err != nil {
			return "", err
		}
		if before, _, found := strings.Cut(string(piece), "\x00"); found {
			return path.String() + before, nil
		}
		path.Write(piece)
		at += uint64(len(piece))
	}
}

// peek fills the buffer from the process's memory.
func peek(tid int, at uint64, into []byte) error {
	if len(into) == 0 {
		return nil
	}
	local := []unix.Iovec{{Base: &into[0]}}
	local[0].SetLen(len(into))
	n, err := unix.ProcessVMReadv(tid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(into)}}, 0)
	if err == nil && n < len(into) {
		err = fmt.Errorf("%d of %d bytes", n, len(into))
	}
	return err
}
