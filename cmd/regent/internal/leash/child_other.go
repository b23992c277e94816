//go:build unix && !linux

package leash

import (
	"os"
	"syscall"
)

func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func dieWithParent() error { return nil }

// awaitExit returns when the process has ended. Its number may be given to another at once; that one would have to be the leader of a group
// to be taken for it.
func awaitExit(p *os.Process, _ bool) { p.Wait() }
