package faults

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	proc "regent/test/process"
)

// process is one that was started, in a session of its own.
type process struct {
	cmd  *exec.Cmd
	gone chan struct{} // closed once it has ended
	// expected says that it is to end, or may.
	expected atomic.Bool
}

// launch starts a command, whose standard error goes to the log of that name. A process that ends
// without being expected to has failed.
func (s *session) launch(name string, cmd *exec.Cmd) (*process, error) {
	log, err := os.OpenFile(filepath.Join(s.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	cmd.Stderr = log
	cmd.Env = append(cmd.Env, s.mark())
	if err := proc.Begin(cmd); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &process{cmd: cmd, gone: make(chan struct{})}
	s.waiting.Go(func() {
		err := cmd.Wait()
		if !p.expected.Load() {
			s.notes.fail("%s has ended by itself: %v", name, err)
		}
		close(p.gone)
	})
	return p, nil
}

func (p *process) pid() int                { return p.cmd.Process.Pid }
func (p *process) signal(s syscall.Signal) { p.cmd.Process.Signal(s) }

// kill ends it as a machine that fails does, and waits until it is gone.
func (p *process) kill() {
	p.expected.Store(true)
	p.signal(syscall.SIGKILL)
	<-p.gone
}

// end tells it to end, and says whether it did so in time. One that did not is killed.
func (p *process) end(patience time.Duration) (inTime bool) {
	p.expected.Store(true)
	p.signal(syscall.SIGCONT)
	p.signal(syscall.SIGTERM)
	select {
	case <-p.gone:
		return true
	case <-time.After(patience):
		p.kill()
		return false
	}
}

// pause stops it for a while.
func (p *process) pause(ctx context.Context, d time.Duration) {
	p.signal(syscall.SIGSTOP)
	sleep(ctx, d)
	p.signal(syscall.SIGCONT)
}

// variable is in the environment of each process of a run, and of all that they start.
const variable = "FAULTS_RUN"

func (s *session) mark() string { return variable + "=" + s.id }

// mustBeGone waits until no process of this run is left, and ends those that are there all the
// same.
func (s *session) mustBeGone() error {
	for end := s.recorder.Now() + 2*time.Second; ; time.Sleep(20 * time.Millisecond) {
		pids := s.left()
		if len(pids) == 0 {
			return nil
		}
		if s.recorder.Now() < end {
			continue
		}
		v := &Violation{}
		for _, pid := range pids {
			v.What = append(v.What, fmt.Sprintf("process %d is left behind: %q", pid, proc.Args(pid)))
			syscall.Kill(pid, syscall.SIGKILL)
		}
		return v
	}
}

// left are the processes of this run that are still there.
func (s *session) left() (pids []int) {
	for _, pid := range proc.All() {
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if bytes.Contains(environ, []byte(s.mark()+"\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
