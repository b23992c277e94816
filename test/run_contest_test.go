package test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/boottime"
)

var heart = built("heart", "regent/test/heart")

// contest is two runs that want to lead the same election.
type contest struct {
	t        testing.TB
	tap      *tap
	election leadership.Election
	lease    time.Duration
	dir      string // where the hearts write
	heart    []string
	log      *os.File
	runs     [2]*wrapper
	harmed   map[leadership.Token]string
}

// wrapper is a running `regent run`.
type wrapper struct {
	cmd  *exec.Cmd
	gone chan struct{}
}

func newContest(t testing.TB, p *tap, lease time.Duration, i int) *contest {
	t.Helper()
	program, err := heart()
	if err != nil {
		t.Fatalf("build: %v", err)
	}
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	c := &contest{t: t, tap: p, election: electionName(i), lease: lease, dir: filepath.Join(dir, "hearts"), log: log, harmed: map[leadership.Token]string{}}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c.heart = append([]string{program, c.dir}, [][]string{{}, {"stubborn"}, {"family"}}[i%3]...)
	t.Cleanup(c.stop)
	for i := range c.runs {
		c.start(i)
	}
	return c
}

// start starts one of the two.
func (c *contest) start(i int) {
	args := append([]string{"run", string(c.election), "--candidate", fmt.Sprintf("agent-%d", i), "--lease", c.lease.String(), "--restart", "--"}, c.heart...)
	w := &wrapper{cmd: invoke(c.t, regent, []string{"REGENT_SERVER=" + c.tap.URL}, args...), gone: make(chan struct{})}
	w.cmd.Stdout, w.cmd.Stderr = c.log, c.log
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // else the end of whoever started these tests may wake up who is stopped
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

// pulse is one process of a heart.
type pulse struct {
	token       leadership.Token
	parent, pid int
	first, last time.Duration
}

// pulses are those of one token, or of all if it is 0, or of the newest if it is -1.
func (c *contest) pulses(token leadership.Token) []pulse {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		c.t.Error(err)
		return nil
	}
	var found []pulse
	for _, entry := range entries {
		var l pulse
		if n, _ := fmt.Sscanf(entry.Name(), "%d.%d.%d", &l.token, &l.parent, &l.pid); n != 3 {
			continue
		}
		switch {
		case token == newest && len(found) > 0 && l.token < found[0].token:
			continue
		case token == newest && len(found) > 0 && l.token > found[0].token:
			found = found[:0]
		case token > 0 && l.token != token:
			continue
		}
		found = append(found, l)
	}
	for i := range found {
		found[i].read(c.dir)
	}
	return found
}

const (
	all    leadership.Token = 0
	newest leadership.Token = -1
)

func (l *pulse) read(dir string) {
	moments, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%d.%d.%d", l.token, l.parent, l.pid)))
	if err == nil && len(moments) == 16 {
		l.first = time.Duration(binary.NativeEndian.Uint64(moments))
		l.last = time.Duration(binary.NativeEndian.Uint64(moments[8:]))
	}
}

// leader waits until a leader's heart beats whose token is above that, with all its family, and returns the token and which of the two it is.
func (c *contest) leader(ctx context.Context, above leadership.Token) (leadership.Token, int, error) {
	family := 1
	if len(c.heart) > 2 && c.heart[2] == "family" {
		family = 3
	}
	for {
		pulses := c.pulses(newest)
		for i, w := range c.runs {
			for _, l := range pulses {
				if l.token > above && l.parent == w.pid() && len(pulses) == family && boottime.Now()-l.last < 100*time.Millisecond {
					return l.token, i, nil
				}
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return 0, 0, fmt.Errorf("%s: nobody leads with a token above %d: %s", c.election, above, c.describe(pulses))
		}
	}
}

// describe says how things stand.
func (c *contest) describe(pulses []pulse) string {
	var b strings.Builder
	for i, w := range c.runs {
		_, state := stateOf(w.pid())
		fmt.Fprintf(&b, "run %d is process %d in state %s; ", i, w.pid(), state)
	}
	for _, p := range pulses {
		end, given := c.tap.endOf(grantOf{c.election, p.token})
		fmt.Fprintf(&b, "token %d beats in %d under %d, last %v ago, its lease ends in %v, given back at %v; ", p.token, p.pid, p.parent, boottime.Now()-p.last, end-boottime.Now(), given)
	}
	return b.String()
}

// guardOf waits until a run has a guard that is not the given one and that watches, and returns its process.
func guardOf(ctx context.Context, w *wrapper, not int) (int, error) {
	for {
		for pid, stat := range children(w.pid()) {
			if pid != not && stat != "T" && isGuard(pid) && watches(pid) {
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

func isGuard(pid int) bool {
	args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return bytes.Contains(args, []byte("\x00run-guard\x00"))
}

// watches says whether a guard has taken hold of its command: one that was only just started does not do anything yet, and to stop the run in
// that moment is to stop both.
func watches(guard int) bool {
	dir := fmt.Sprintf("/proc/%d/fd", guard)
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		if what, _ := os.Readlink(filepath.Join(dir, f.Name())); strings.Contains(what, "[pidfd]") {
			return true
		}
	}
	return false
}

// children are the processes that have a parent, and their states.
func children(parent int) map[int]string {
	found := map[int]string{}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if of, state := stateOf(pid); of == parent {
			found[pid] = state
		}
	}
	return found
}

// stateOf is the parent of a process, and its state as ps shows it; 0 and nothing if it is gone.
func stateOf(pid int) (parent int, state string) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent)
	return parent, state
}
