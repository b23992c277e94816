package leash

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is the processes of a command: those in its process group, and those that left it but carry
// the mark.
type group struct {
	id int
	// pidfd of the leader, valid even if the PID is reused; -1 if this kernel has none
	leader int
	mark   string // an environment entry that no other process has
	// start time of the leader in the kernel's ticks; older processes are not part of the group
	began int
}

// openGroup opens the group of a process that parent started. If the process was reaped and its PID
// may belong to another one, the group is only the processes with the mark.
func openGroup(id, parent int, mark string) *group {
	g := &group{id: id, mark: mark}
	var err error
	if g.leader, err = unix.PidfdOpen(id, 0); err != nil {
		g.leader = -1
	}
	p := look(id)
	if p.parent != parent && !g.marked(id) {
		g.close()
		return &group{id: noGroup, leader: -1, mark: mark}
	}
	g.began = p.began
	return g
}

// noGroup is the id of no process group.
const noGroup = -1

func (g *group) close() {
	if g.leader >= 0 {
		unix.Close(g.leader)
	}
}

// signal sends a signal to the group, and never to another group with the same id.
func (g *group) signal(sig syscall.Signal) {
	if g.id == noGroup {
		return
	}
	err := unix.EINVAL
	if g.leader >= 0 {
		err, _ = unix.PidfdSendSignal(g.leader, sig, nil, unix.PIDFD_SIGNAL_PROCESS_GROUP).(syscall.Errno)
	}
	if err == 0 || !errors.Is(err, unix.EINVAL) { // EINVAL: a kernel before 6.9
		return
	}
	// not reaped, so the PID is still its own
	if g.leader < 0 || unix.PidfdSendSignal(g.leader, 0, nil, 0) == nil {
		unix.Kill(-g.id, sig)
	}
}

// sweep kills the processes that left the group, and reports whether any process of the command
// still runs.
func (g *group) sweep() (left bool) {
	proc, err := os.Open("/proc")
	if err != nil {
		return false // no /proc: the group itself was signalled
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && g.has(pid) {
			left = true
		}
	}
	return left
}

// has reports whether a process is one of the group and runs. It kills a marked process itself,
// inside the group or not: before kernel 6.9 a group without a leader cannot be signalled.
func (g *group) has(pid int) bool {
	p := look(pid)
	if !p.runs && p.group == g.id && pid != g.id && os.Getpid() == 1 {
		unix.Wait4(pid, nil, unix.WNOHANG, nil) // as PID 1 of a container this process must reap it
	}
	if !p.runs || p.began < g.began {
		return false
	}
	if !g.marked(pid) {
		return p.group == g.id
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return !errors.Is(err, unix.ESRCH) && unix.Kill(pid, unix.SIGKILL) == nil
	}
	defer unix.Close(fd)
	// marked again: the first check may have read another process
	return g.marked(pid) && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
}

// place is the entry of a process in /proc.
type place struct {
	parent, group int
	began         int  // as in group
	runs          bool // any of its threads
}

// look reads /proc/PID/stat. It returns the zero place if the process is gone.
func look(pid int) place {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	// the program's name before it may contain anything
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, parent, group, threads, start = 0, 1, 2, 17, 19
	if err != nil || len(fields) <= start {
		return place{}
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(string(fields[i]))
		return n
	}
	dead := bytes.ContainsAny(fields[state], "ZX") && number(threads) <= 1
	return place{number(parent), number(group), number(start), !dead}
}

// marked reports whether the mark is in the environment that a process was started with.
func (g *group) marked(pid int) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil || len(environ) == 0 {
		return false
	}
	mark := append([]byte(g.mark), 0)
	return bytes.HasPrefix(environ, mark) || bytes.Contains(environ, append([]byte{0}, mark...))
}
