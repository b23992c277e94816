package leash

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is the processes of a command: those of the process group that it was started in, and those that left it but have the mark.
type group struct {
	id     int
	leader int    // a pidfd, which stands for the group also when its number was given to another; -1 if this kernel has none
	mark   string // an entry of the environment that nobody else has
	began  int    // when its leader was started, in the kernel's ticks; who is older is none of these
}

// openGroup takes hold of the group of a process that was started by that parent. If it was reaped, and its number may be another's by now, all
// that is left is who has the mark.
func openGroup(id, parent int, mark string) *group {
	g := &group{id: id, mark: mark}
	var err error
	if g.leader, err = unix.PidfdOpen(id, 0); err != nil {
		g.leader = -1
	}
	p := look(id)
	if p.parent != parent && !g.marked(id) {
		g.close()
		return &group{id: nobody, leader: -1, mark: mark}
	}
	g.began = p.began
	return g
}

// nobody is no process group.
const nobody = -1

func (g *group) close() {
	if g.leader >= 0 {
		unix.Close(g.leader)
	}
}

// signal sends a signal to the group, and to no other that may have its number now.
func (g *group) signal(sig syscall.Signal) {
	if g.id == nobody {
		return
	}
	err := unix.EINVAL
	if g.leader >= 0 {
		err, _ = unix.PidfdSendSignal(g.leader, sig, nil, unix.PIDFD_SIGNAL_PROCESS_GROUP).(syscall.Errno)
	}
	if err == 0 || !errors.Is(err, unix.EINVAL) { // which kernels before 6.9 say
		return
	}
	if g.leader < 0 || unix.PidfdSendSignal(g.leader, 0, nil, 0) == nil { // not reaped, so that the number is its own
		unix.Kill(-g.id, sig)
	}
}

// sweep kills those that left the group, and says whether any of all that there were still runs.
func (g *group) sweep() (left bool) {
	proc, err := os.Open("/proc")
	if err != nil {
		return false // nobody can be looked for; the group has its signal
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

// has says whether a process is one of these and runs, and kills it by itself, whether it left the group or not: on kernels before 6.9 a group whose
// leader is gone has no signal of its own.
func (g *group) has(pid int) bool {
	p := look(pid)
	if !p.runs && p.group == g.id && pid != g.id && os.Getpid() == 1 {
		unix.Wait4(pid, nil, unix.WNOHANG, nil) // nobody else does, in a container
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
	return g.marked(pid) && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil // the second look is at the process of fd
}

// place is where a process stands.
type place struct {
	parent, group int
	began         int  // as in group
	runs          bool // any thread of it
}

// look reads /proc/PID/stat. Of a process that is gone it is all zero.
func look(pid int) place {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // before it is the program's name, which may be anything
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

// marked says whether a process was started with the mark in its environment.
func (g *group) marked(pid int) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil || len(environ) == 0 {
		return false
	}
	mark := append([]byte(g.mark), 0)
	return bytes.HasPrefix(environ, mark) || bytes.Contains(environ, append([]byte{0}, mark...))
}
