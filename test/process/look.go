package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// All returns the numbers of all processes.
func All() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Stat returns the parent of a process and its state as ps shows it; 0 and "" if it is gone.
func Stat(pid int) (parent int, state string) {
	return stat(fmt.Sprintf("/proc/%d/stat", pid))
}

func stat(file string) (parent int, state string) {
	stat, _ := os.ReadFile(file)
	fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent)
	return parent, state
}

// Stopped reports whether no thread of a process runs any more: SIGSTOP does not stop all of them
// at once.
func Stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, file := range threads {
		if _, state := stat(file); state != "T" && state != "Z" && state != "" {
			return false
		}
	}
	return true
}

// Children returns the processes of a parent, and their states.
func Children(parent int) map[int]string {
	found := map[int]string{}
	for _, pid := range All() {
		if of, state := Stat(pid); of == parent {
			found[pid] = state
		}
	}
	return found
}

// Args returns the command line of a process, with a zero byte after each argument.
func Args(pid int) []byte {
	args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return args
}

// IsGuard reports whether a process is the guard of a `regent run`, and has taken hold of its
// command. One that was only just started does nothing yet; to stop the run at that moment is to
// stop both.
func IsGuard(pid int) bool {
	if !bytes.Contains(Args(pid), []byte("\x00run-guard\x00")) {
		return false
	}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		if target, _ := os.Readlink(filepath.Join(dir, f.Name())); strings.Contains(target, "[pidfd]") {
			return true
		}
	}
	return false
}
