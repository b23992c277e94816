//go:build unix

package leash

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
)

// child is the command. Until begin it is the gate, a process that waits.
type child struct {
	proc   *os.Process
	gate   *os.File
	order  string        // opens the gate; see gate
	exited chan struct{} // closed when it has exited; its PID stays reserved until reap
	reaped chan struct{} // closed by reap
	state  chan *os.ProcessState
	paused atomic.Bool // by the caller, not by Ctrl-Z
}

// start starts the gate in a process group of its own.
func start(c Config, env []string, foreground bool) (*child, error) {
	program, err := self()
	if err != nil {
		return nil, err
	}
	wait, gate, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer wait.Close()
	order := fmt.Sprintln(os.Getpid(), c.NewPrivileges)
	ch := &child{gate: gate, order: order, exited: make(chan struct{}), reaped: make(chan struct{}), state: make(chan *os.ProcessState, 1)}
	args := append([]string{c.Args[0], roleGate, c.Path}, c.Args...)
	attr := &os.ProcAttr{Env: env, Files: []*os.File{c.Files[0], c.Files[1], c.Files[2], wait}, Sys: childAttributes()}
	started := make(chan error)
	go ch.live(program, args, attr, foreground, started)
	if err := <-started; err != nil {
		gate.Close()
		return nil, err
	}
	return ch, nil
}

// live starts the process and waits for it on one thread: when that thread ends, the kernel kills
// the process.
func (c *child) live(program string, args []string, attr *os.ProcAttr, foreground bool, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var err error
	c.proc, err = os.StartProcess(program, args, attr)
	started <- err
	if err != nil {
		return
	}
	awaitExit(c.proc, foreground, &c.paused)
	close(c.exited)
	<-c.reaped
	state, _ := c.proc.Wait()
	c.state <- state
}

func (c *child) begin() {
	// fails only if the gate was killed, and then exited is closed
	io.WriteString(c.gate, c.order)
	c.gate.Close()
}

// reap waits until the process has ended, frees its PID, and returns how it ended.
func (c *child) reap() End {
	c.gate.Close() // makes a gate that has not begun exit
	close(c.reaped)
	state := <-c.state
	if state == nil {
		return End{Code: codeNeverBegan}
	}
	status, _ := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return End{Code: 128 + int(status.Signal()), Signal: status.Signal()}
	}
	return End{Code: state.ExitCode()}
}
