package emulators

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

//go:embed guard.sh
var guardScript string

// stopLimit bounds the end of a family: the guard's five seconds between SIGTERM
// and SIGKILL, and as many again.
const stopLimit = 10 * time.Second

// guard runs a command that ends, with all its processes, when stop is called or
// this process dies.
type guard struct {
	hangUp func() // closes the lifeline
	output *tail
	ended  chan struct{} // closed when no process holds the output any more
}

// startGuard starts the command. What it prints goes to log, if that is not nil.
func startGuard(command, env []string, log io.Writer) (*guard, error) {
	lifeline, hold, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer lifeline.Close()
	output, print, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, hold.Close())
	}
	defer print.Close()

	cmd := exec.Command("/bin/sh", append([]string{"-c", guardScript, "guard"}, command...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = lifeline, print, print
	// A session of its own, so that a Ctrl-C meant for the starter leaves the guard
	// to end its family in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, hold.Close(), output.Close())
	}
	g := &guard{
		hangUp: sync.OnceFunc(func() { hold.Close() }),
		output: newTail(log),
		ended:  make(chan struct{}),
	}
	go g.follow(cmd, output)
	return g, nil
}

// follow reads what the family prints until the last of it is gone: they all share
// the writing end, and the kernel closes it for each of them.
func (g *guard) follow(cmd *exec.Cmd, output *os.File) {
	defer close(g.ended)
	defer output.Close()
	_, _ = io.Copy(g.output, output)
	_ = cmd.Wait() // its own SIGKILL, always
}

// stop ends the command and returns when no process of its family is left, or with
// an error when ctx ends before that or one is left after ten seconds.
func (g *guard) stop(ctx context.Context) error {
	g.hangUp()
	late := time.NewTimer(stopLimit)
	defer late.Stop()
	select {
	case <-g.ended:
		return nil
	case <-late.C:
		return fmt.Errorf("its processes still run after %v", stopLimit)
	case <-ctx.Done():
		return fmt.Errorf("wait for its processes to end: %w", ctx.Err())
	}
}

// died returns an error with the last of what the command printed.
func (g *guard) died() error {
	return fmt.Errorf("it ended at once: %s", strings.TrimSpace(g.output.String()))
}
