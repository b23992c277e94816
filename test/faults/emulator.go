package faults

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	proc "regent/test/process"
)

// listenerAt is the process that listens at host:port on this machine; 0 if it cannot be found.
func listenerAt(address string) int {
	_, port, err := net.SplitHostPort(address)
	var number int
	if _, bad := fmt.Sscan(port, &number); err != nil || bad != nil {
		return 0
	}
	inodes := map[string]bool{}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(file)
		for line := range strings.Lines(string(text)) {
			const listening, local, state, inode = "0A", 1, 3, 9
			f := strings.Fields(line)
			if len(f) > inode && f[state] == listening && strings.HasSuffix(f[local], fmt.Sprintf(":%04X", number)) {
				inodes["socket:["+f[inode]+"]"] = true
			}
		}
	}
	for _, pid := range proc.All() {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, file := range files {
			if what, _ := os.Readlink(file); inodes[what] {
				return pid
			}
		}
	}
	return 0
}
