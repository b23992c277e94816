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

// stopLimit limits the end of a family: the guard's five seconds between SIGTERM and SIGKILL, and
// as many again.
const stopLimit = 10 * time.Second

// Guard runs a command that ends, with all its processes, when Stop is called or this process dies.
type Guard struct {
	hangUp func() // closes the pipe to the guard
	output *tail
	ended  chan struct{} // closed when no process holds the output any more
}

// StartGuard starts the command, with the variables env added to those of this process. Its output
// goes to log, if that is not nil. gcloud finds an empty configuration of its own.
func StartGuard(command, env []string, log io.Writer) (*Guard, error) {
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
	// A session of its own: a Ctrl-C for the starter must leave the guard to end its family in
	// order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, hold.Close(), output.Close())
	}
	g := &Guard{
		hangUp: sync.OnceFunc(func() { hold.Close() }),
		output: newTail(log),
		ended:  make(chan struct{}),
	}
	go g.follow(cmd, output)
	return g, nil
}

// follow reads the family's output until the last process is gone: they share the writing end, and
// the kernel closes it for each of them.
func (g *Guard) follow(cmd *exec.Cmd, output *os.File) {
	defer close(g.ended)
	defer output.Close()
	_, _ = io.Copy(g.output, output)
	_ = cmd.Wait() // the error is always its own SIGKILL
}

// Stop ends the command and returns when no process of its family is left. It returns an error if
// ctx ends first, or if one is left after ten seconds.
func (g *Guard) Stop(ctx context.Context) error {
	g.hangUp()
	select {
	case <-g.ended:
		return nil
	case <-time.After(stopLimit):
		return fmt.Errorf("its processes are still running after %v", stopLimit)
	case <-ctx.Done():
		return fmt.Errorf("wait for its processes to end: %w", ctx.Err())
	}
}

// Ended returns a channel that is closed when no process of the command is left.
func (g *Guard) Ended() <-chan struct{} { return g.ended }

// died returns an error with the end of the command's output.
func (g *Guard) died() error {
	return fmt.Errorf("it ended at once: %s", strings.TrimSpace(g.output.String()))
}
