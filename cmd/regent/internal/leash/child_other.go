//go:build unix && !linux

package leash

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
)

func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func dieWithParent() error { return nil }

// refusePrivileges returns an error for a program that would run as another user. What that program
// starts cannot be checked on this system.
func refusePrivileges(path string) error {
	file, err := os.Stat(path)
	if err == nil && file.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
		return errors.New("it is a set-uid or set-gid program, which runs as another user and could not be stopped at the deadline")
	}
	return nil // Exec says what is wrong with a file that cannot be read
}

// awaitExit returns when the process has exited. Its PID may be reused at once; the new process
// would have to lead a group to be mistaken for it.
func awaitExit(p *os.Process, _ bool, _ *atomic.Bool) { p.Wait() }
