// Package contender is how a bench talks to a process that competes for one lock. The process
// prints a line of JSON for each thing that happens to it; a line on its standard input tells it to
// release the lock, and the end of that input to exit.
package contender

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"regent/leadership/boottime"
)

// Event is what happens to a contender.
type Event string

// The events.
const (
	Leads     Event = "leads"     // it has found out that it holds the lock
	Releasing Event = "releasing" // it begins to release the lock
)

// News is an event with its instant of boottime.Now, which is the same in all processes of a
// machine.
type News struct {
	Event Event
	At    time.Duration
}

// Report prints that the event happens now.
func Report(e Event) { json.NewEncoder(os.Stdout).Encode(News{e, boottime.Now()}) }

// Obey calls release, after a report, when the bench asks for it. It returns when the standard
// input ends.
func Obey(release func() error) error {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		Report(Releasing)
		if err := release(); err != nil {
			return err
		}
	}
	return nil
}

// Process is a contender that runs.
type Process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr strings.Builder // to be read when the process has ended
	gone   chan struct{}   // closed once it has
	news   map[Event]chan time.Duration
}

// Start starts the process.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, gone: make(chan struct{}), news: make(map[Event]chan time.Duration)}
	for _, e := range []Event{Leads, Releasing} {
		p.news[e] = make(chan time.Duration, 1)
	}
	cmd.Stderr = &p.stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go p.listen(out)
	return p, nil
}

// listen keeps the first of the news of each kind until the process ends.
func (p *Process) listen(out io.Reader) {
	defer close(p.gone)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var n News
		if json.Unmarshal(lines.Bytes(), &n) != nil {
			continue
		}
		select {
		case p.news[n.Event] <- n.At:
		default:
		}
	}
	p.cmd.Wait()
}

// Await waits for an event, and returns its instant. Call it once for each event. It is an error if
// the process ends before.
func (p *Process) Await(ctx context.Context, e Event) (time.Duration, error) {
	select {
	case at := <-p.news[e]:
		return at, nil
	case <-p.gone:
		return 0, fmt.Errorf("%s has ended before the event %q: %s", p.cmd.Path, e, p.log())
	case <-ctx.Done():
		return 0, fmt.Errorf("%s, event %q: %w", p.cmd.Path, e, ctx.Err())
	}
}

// Release tells the process to release its lock, and returns the instant at which it begins to.
func (p *Process) Release(ctx context.Context) (time.Duration, error) {
	if _, err := io.WriteString(p.stdin, "release\n"); err != nil {
		return 0, err
	}
	return p.Await(ctx, Releasing)
}

// Kill kills the process (SIGKILL) and returns the instant before.
func (p *Process) Kill() (time.Duration, error) {
	at := boottime.Now()
	err := p.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = fmt.Errorf("%s has ended by itself: %s", p.cmd.Path, p.log())
	}
	return at, err
}

// Stop kills the process and returns when it has ended. Idempotent.
func (p *Process) Stop() {
	p.stdin.Close()
	p.cmd.Process.Kill()
	<-p.gone
}

// log returns the standard error of the process, once it has ended.
func (p *Process) log() string {
	<-p.gone
	return p.stderr.String()
}
