package faults

import (
	"os"
	"os/exec"
	"path/filepath"

	proc "regent/test/process"
)

// Abilities is what this machine can do beyond signals and proxies.
type Abilities struct {
	TimeNamespaces    bool     // unshare -T works
	NetworkNamespaces bool     // ip works, and namespaces can be made
	Freezable         []string // "firestore", "spanner", "topic": emulators that this process has started, and may stop
}

// abilities finds out what this machine can do.
func abilities() Abilities {
	return Abilities{
		TimeNamespaces:    works("unshare", "-T", "--boottime", "1", "true"),
		NetworkNamespaces: works("unshare", "-n", "ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1") && works("nsenter", "--version"),
	}
}

func works(name string, args ...string) bool { return exec.Command(name, args...).Run() == nil }

// leftOut returns a sentence for each kind of fault that no run tries here.
func (a Abilities) leftOut() (out []string) {
	if !a.TimeNamespaces {
		out = append(out, "other boots and shifted clocks: unshare -T does not work here")
	}
	if !a.NetworkNamespaces {
		out = append(out, "partitions by network namespaces: they cannot be made here")
	}
	if len(a.Freezable) == 0 {
		out = append(out, "stopped emulators: none was started by this process")
	}
	if found, _ := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1"); len(found) == 0 {
		out = append(out, "jumps of the stores' clocks: there is no libfaketime")
	} else {
		out = append(out, "jumps of the stores' clocks: not built")
	}
	return out
}

// owned reports whether a process is this one, or descends from it.
func owned(pid int) bool {
	for pid > 1 {
		if pid == os.Getpid() {
			return true
		}
		pid, _ = proc.Stat(pid)
	}
	return false
}
