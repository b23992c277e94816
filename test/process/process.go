package process

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Process is a program that was started.
type Process struct {
	*exec.Cmd
	URL  string        // of one that serves
	Log  *Log          // what it writes to standard output and standard error
	Gone chan struct{} // closed once it has ended, and Log is complete
}

// Start starts a command. It is killed when the test ends. If the command has no output yet, the
// Log is.
func Start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{Cmd: cmd, Log: NewLog(), Gone: make(chan struct{})}
	if cmd.Stdout == nil && cmd.Stderr == nil {
		cmd.Stdout, cmd.Stderr = p.Log, p.Log
	}
	require.NoError(t, Begin(cmd))
	go func() {
		cmd.Wait()
		p.Log.Close()
		close(p.Gone)
	}()
	t.Cleanup(p.Kill)
	return p
}

// Serve starts a command that serves, and waits until it does.
func Serve(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := Start(t, cmd)
	p.URL = "http://" + p.Log.Await(t, "serving")["address"].(string)
	return p
}

// Kill kills the process and its group, and waits for its end.
func (p *Process) Kill() {
	syscall.Kill(-p.Process.Pid, syscall.SIGKILL)
	<-p.Gone
}

// End sends a signal, and waits for the end.
func (p *Process) End(t testing.TB, s os.Signal) *os.ProcessState {
	t.Helper()
	require.NoError(t, p.Process.Signal(s))
	<-p.Gone
	return p.ProcessState
}

// Begin is cmd.Start for a process that leads a group of its own, and is killed when this process
// ends.
func Begin(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = !cmd.SysProcAttr.Setsid // which makes a group as well
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	err := make(chan error)
	starts() <- func() { err <- cmd.Start() }
	return <-err
}

// starts returns where a thread that never ends takes what it does: Linux kills processes that are
// to end with this one when the thread ends that has started them.
var starts = sync.OnceValue(func() chan<- func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for job := range jobs {
			job()
		}
	}()
	return jobs
})
