package test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/test/process"
)

var lifespan = process.Program{Package: "regent/test/process/lifespan"}

// contest is two runs that want to lead the same election.
type contest struct {
	t        testing.TB
	proxy    *leaseProxy
	election leadership.Election
	lease    time.Duration
	dir      string // where the commands write
	command  []string
	log      *os.File
	runs     [2]*wrapper
	harmed   map[leadership.Token]string
	missed   int // leaders that had ended when they were to be harmed
}

// wrapper is a running `regent run`.
type wrapper struct {
	cmd  *exec.Cmd
	gone chan struct{}
}

func newContest(t testing.TB, p *leaseProxy, lease time.Duration, i int) *contest {
	t.Helper()
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	c := &contest{t: t, proxy: p, election: electionName(i), lease: lease, dir: filepath.Join(dir, "lifespans"), log: log, harmed: map[leadership.Token]string{}}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c.command = append([]string{lifespan.Path(t), c.dir}, [][]string{{}, {"stubborn"}, {"family"}}[i%3]...)
	t.Cleanup(c.stop)
	for i := range c.runs {
		c.start(i)
	}
	return c
}

// start starts one of the two.
func (c *contest) start(i int) {
	args := append([]string{"run", string(c.election), "--candidate", fmt.Sprintf("agent-%d", i), "--lease", c.lease.String(), "--restart", "--"}, c.command...)
	w := &wrapper{cmd: invoke(c.t, process.Regent, []string{"REGENT_SERVER=" + c.proxy.URL}, args...), gone: make(chan struct{})}
	w.cmd.Stdout, w.cmd.Stderr = c.log, c.log
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // else the end of the process that started these tests may resume a stopped one
	if err := w.cmd.Start(); err != nil {
		c.t.Error(err)
		close(w.gone)
		return
	}
	go func() {
		w.cmd.Wait()
		close(w.gone)
	}()
	c.runs[i] = w
}

// stop ends both.
func (c *contest) stop() {
	for _, w := range c.runs {
		if w != nil {
			w.signal(syscall.SIGKILL)
			<-w.gone
		}
	}
	if text, err := os.ReadFile(c.log.Name()); c.t.Failed() && err == nil {
		c.t.Logf("%s: the last of the log:\n%s", c.election, text[max(0, len(text)-4000):])
	}
	c.log.Close()
}

func (w *wrapper) signal(s syscall.Signal) { w.cmd.Process.Signal(s) }
func (w *wrapper) pid() int                { return w.cmd.Process.Pid }

// lifespans returns those of all tokens.
func (c *contest) lifespans() []process.Lifespan {
	found, err := process.Lifespans(c.dir)
	if err != nil {
		c.t.Error(err)
	}
	return found
}

// newest returns the lifespans of the highest token.
func (c *contest) newest() (found []process.Lifespan) {
	for _, l := range c.lifespans() {
		if len(found) > 0 && l.Token > found[0].Token {
			found = found[:0]
		}
		if len(found) == 0 || l.Token == found[0].Token {
			found = append(found, l)
		}
	}
	return found
}

// leader waits until a leader's command runs whose token is above that, with all its family, and
// returns the token and which of the two it is.
func (c *contest) leader(ctx context.Context, above leadership.Token) (leadership.Token, int, error) {
	family := 1
	if len(c.command) > 2 && c.command[2] == "family" {
		family = 3
	}
	for {
		lifespans := c.newest()
		for i, w := range c.runs {
			for _, l := range lifespans {
				if l.Token > above && l.Parent == w.pid() && len(lifespans) == family && boottime.Now()-l.Last < 100*time.Millisecond {
					return l.Token, i, nil
				}
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return 0, 0, fmt.Errorf("%s: no leader with a token above %d: %s", c.election, above, c.describe(lifespans))
		}
	}
}

// describe returns the state of the contest, for a failure message.
func (c *contest) describe(lifespans []process.Lifespan) string {
	var b strings.Builder
	for i, w := range c.runs {
		_, state := process.Stat(w.pid())
		fmt.Fprintf(&b, "run %d is process %d in state %s; ", i, w.pid(), state)
	}
	for _, p := range lifespans {
		end, given := c.proxy.endOf(grantOf{c.election, p.Token})
		fmt.Fprintf(&b, "token %d runs in %d under %d, last %v ago, its lease ends in %v, given back at %v; ", p.Token, p.PID, p.Parent, boottime.Now()-p.Last, end-boottime.Now(), given)
	}
	return b.String()
}

// guardOf waits until a run has a guard that is not the given one and that watches, and returns its
// process.
func guardOf(ctx context.Context, w *wrapper, not int) (int, error) {
	for {
		for pid, stat := range process.Children(w.pid()) {
			if pid != not && stat != "T" && process.IsGuard(pid) {
				return pid, nil
			}
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return 0, fmt.Errorf("process %d has no guard but %d", w.pid(), not)
		}
	}
}
