//go:build unix && !linux

package leash

import (
	"os"
	"syscall"
)

func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func dieWithParent() error { return nil }

// awaitExit returns when the process has exited. Its PID may be reused at once; the new process
// would have to lead a group to be mistaken for it.
func awaitExit(p *os.Process, _ bool) { p.Wait() }
