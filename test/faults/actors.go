package faults

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"regent/test/checker"
	"regent/test/faults/cast"
	"regent/test/faults/tap"
	"regent/test/processes"
)

// troupe is an agent process, over all its lives.
type troupe struct {
	Troupe
	stage  *stage
	config cast.Config
	link   *link // nil if it is not isolated

	mu      sync.Mutex // guards all below
	process *process
	word    io.WriteCloser
	since   time.Duration // when this life began
}

// start starts the next life of it.
func (t *troupe) start() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.config.Life++
	spec, err := json.Marshal(t.config)
	if err != nil {
		return err
	}
	cmd := t.stage.rig.command(agent, []string{cast.Variable + "=" + string(spec)})
	if t.Offset != 0 {
		cmd = shifted(cmd, int64(t.Offset/time.Second))
	}
	if t.link != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	}
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout = in
	if t.word, err = cmd.StdinPipe(); err != nil {
		return err
	}
	t.process, err = t.stage.launch(t.Name, cmd)
	in.Close()
	if err != nil {
		return err
	}
	t.stage.waiting.Go(func() { t.stage.book.listen(out) })
	if t.link != nil {
		if err := t.link.lead(t.process.pid()); err != nil {
			return err
		}
	}
	t.since = t.stage.diary.Now()
	_, err = fmt.Fprintln(t.word, cast.Begin)
	return err
}

func (t *troupe) now() *process {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.process
}

// life is the name of a member in the present life of the process.
func (t *troupe) life(m cast.Member) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("%s.%d", m.Name, t.config.Life)
}

// quiet has its members come to an end, but for those who watch.
func (t *troupe) quiet() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stage.book.want(t.willing())
	fmt.Fprintln(t.word, cast.Quiet)
}

// willing are the times in this life during which members wanted to lead without a break. The mutex is held.
func (t *troupe) willing() (all []checker.Willing) {
	for _, m := range t.Members {
		if m.Role == cast.Steady {
			all = append(all, checker.Willing{Who: m.Name, Election: m.Election, From: t.since, Until: t.stage.diary.Now()})
		}
	}
	return all
}

// givesUp takes down who wanted to lead until now.
func (t *troupe) givesUp() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stage.book.want(t.willing())
}

// listen takes down what an agent process tells until it is gone.
func (b *book) listen(out io.ReadCloser) {
	defer out.Close()
	lines := bufio.NewReader(out)
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			return // what a process was killed over is not whole
		}
		var l cast.Line
		if err := json.Unmarshal(text, &l); err != nil {
			b.fail("an agent tells %.200q: %v", text, err)
			continue
		}
		b.add(l)
	}
}

// wrapper is a `regent run`, over all its lives. Its command writes down when it lived.
type wrapper struct {
	Wrapper
	stage     *stage
	tap       *tap.Tap
	lifespans string // folder

	mu      sync.Mutex // guards process
	process *process
}

func (w *wrapper) start() error {
	args := []string{
		"run", string(w.Election), "--server", w.tap.URL(), "--timeout", "2s", "--candidate", w.Name, "--lease", w.stage.plan.Lease.String(), "--restart",
		"--", filepath.Join(w.stage.rig.dir, lifespan), w.lifespans,
	}
	if w.Manner != "" {
		args = append(args, w.Manner)
	}
	p, err := w.stage.launch(w.Name, w.stage.rig.command(regent, nil, args...))
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
	found, _ := processes.Lifespans(w.lifespans)
	for _, l := range found {
		all = append(all, checker.Belief{
			Who: fmt.Sprintf("%s/%d", w.Name, l.PID), Election: w.Election, Token: l.Token, From: l.First, Until: l.Last,
		})
	}
	return all
}

// guard is the process that guards its command, if there is one that does; else 0.
func (w *wrapper) guard() int {
	for pid := range processes.Children(w.now().pid()) {
		if processes.IsGuard(pid) {
			return pid
		}
	}
	return 0
}
