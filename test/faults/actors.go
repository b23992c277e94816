package faults

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"regent/test/checker"
	"regent/test/faults/record"
	proc "regent/test/process"
)

// group is an agent process, over all its lives.
type group struct {
	Group
	session *session
	config  record.Config

	mu      sync.Mutex // guards all below
	process *process
	word    io.WriteCloser
	since   time.Duration // when this life began
}

// start starts its next life.
func (t *group) start() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.config.Life++
	spec, err := json.Marshal(t.config)
	if err != nil {
		return err
	}
	cmd := t.session.setup.command(agent, []string{record.Variable + "=" + string(spec)})
	if t.Offset != 0 {
		cmd = shifted(cmd, int64(t.Offset/time.Second))
	}
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout = in
	if t.word, err = cmd.StdinPipe(); err != nil {
		return err
	}
	t.process, err = t.session.launch(t.Name, cmd)
	in.Close()
	if err != nil {
		return err
	}
	t.session.waiting.Go(func() { t.session.notes.listen(out) })
	t.since = t.session.recorder.Now()
	_, err = fmt.Fprintln(t.word, record.Begin)
	return err
}

func (t *group) now() *process {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.process
}

// life is the name of a member in the present life of the process.
func (t *group) life(m record.Member) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("%s.%d", m.Name, t.config.Life)
}

// quiet ends its members, except those that watch.
func (t *group) quiet() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.session.notes.want(t.willing())
	fmt.Fprintln(t.word, record.Quiet)
}

// willing are the times in this life during which members wanted to lead without a break. The mutex
// is held.
func (t *group) willing() (all []checker.Willing) {
	for _, m := range t.Members {
		if m.Role == record.Steady {
			all = append(all, checker.Willing{Who: m.Name, Election: m.Election, From: t.since, Until: t.session.recorder.Now()})
		}
	}
	return all
}

// givesUp records which members wanted to lead until now.
func (t *group) givesUp() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.session.notes.want(t.willing())
}

// listen records the lines of an agent process until it ends. The outcome of calls that it had not
// finished is unknown.
func (b *notes) listen(out io.ReadCloser) {
	defer out.Close()
	lines := bufio.NewReader(out)
	open := map[int]*checker.Call{}
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil { // the line that a process was killed over is not whole
			for _, c := range open {
				b.add(record.Line{Call: c})
			}
			return
		}
		var l record.Line
		if err := json.Unmarshal(text, &l); err != nil {
			b.fail("an agent tells %.200q: %v", text, err)
			continue
		}
		if l.Sent != nil {
			open[l.N] = l.Sent
		} else if l.Call != nil {
			delete(open, l.N)
		}
		b.add(l)
	}
}

// wrapper is a `regent run`, over all its lives. Its command records its own lifespan.
type wrapper struct {
	Wrapper
	session   *session
	proxy     *record.Proxy
	lifespans string // folder

	mu      sync.Mutex // guards process
	process *process
}

func (w *wrapper) start() error {
	args := []string{
		"run", string(w.Election), "--server", w.proxy.URL(), "--timeout", "2s", "--candidate", w.Name, "--lease", w.session.plan.Lease.String(), "--restart",
		"--", w.session.setup.paths[lifespan], w.lifespans,
	}
	if w.Mode != "" {
		args = append(args, w.Mode)
	}
	p, err := w.session.launch(w.Name, w.session.setup.command(regent, nil, args...))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.process = p
	return err
}

func (w *wrapper) now() *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.process
}

// beliefs are those of its commands: each believed for as long as it lived.
func (w *wrapper) beliefs() (all []checker.Belief) {
	found, _ := proc.Lifespans(w.lifespans)
	for _, l := range found {
		all = append(all, checker.Belief{
			Who: fmt.Sprintf("%s/%d", w.Name, l.PID), Election: w.Election, Token: l.Token, From: l.First, Until: l.Last,
		})
	}
	return all
}

// guard is the process that guards its command; 0 if there is none.
func (w *wrapper) guard() int {
	for pid := range proc.Children(w.now().pid()) {
		if proc.IsGuard(pid) {
			return pid
		}
	}
	return 0
}
