package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// report has the parts to do, and what became of each.
type report struct {
	config
	began time.Time

	mu    sync.Mutex // guards the results of parts
	parts []*part
}

// result is what the tests of a part have said so far.
type result struct {
	figures map[string]int // by what they count
	skipped []string       // tests
	failed  []string       // tests, or why they could not be run
	done    bool
}

// do runs the tests of all parts, those that compute one after the other, beside the others.
func (r *report) do(ctx context.Context) {
	var sides sync.WaitGroup
	for _, computes := range []bool{true, false} {
		sides.Go(func() {
			for _, p := range r.parts {
				if p.computes == computes && ctx.Err() == nil {
					r.take(p, r.test(ctx, p))
				}
			}
		})
	}
	sides.Wait()
}

// take notes a part's result, and writes the report.
func (r *report) take(p *part, found result) {
	r.mu.Lock()
	p.result = found
	r.mu.Unlock()
	fmt.Printf("%s: %s; found: %s\n", p.name, found.looked(), found.found())
	if err := os.WriteFile(r.file("report.md"), []byte(r.String()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "prove:", err)
	}
}

// test runs the tests of a part, and keeps their output.
func (r *report) test(ctx context.Context, p *part) result {
	output, err := os.Create(r.file(p.name + ".txt"))
	if err != nil {
		return result{failed: []string{err.Error()}}
	}
	defer output.Close()
	for _, g := range p.runs {
		if runErr := g.run(ctx, output); ctx.Err() == nil {
			err = errors.Join(err, runErr)
		}
	}
	said, readErr := os.ReadFile(output.Name())
	found := results(said, errors.Join(err, readErr))
	found.done = ctx.Err() == nil
	return found
}

// run runs the tests. What they have started ends with them.
func (g goTest) run(ctx context.Context, output *os.File) error {
	args := append([]string{"test", "-v", "-count=1", "-timeout=0", "-run", "^(" + g.names + ")$", g.dir}, g.args...)
	command := exec.CommandContext(ctx, "go", args...)
	command.Stdout, command.Stderr = output, output
	command.Env = append(os.Environ(), g.env...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) } // the tests would outlive go test
	command.WaitDelay = time.Second
	return command.Run()
}

var (
	verdictLine = regexp.MustCompile(`(?m)^ *--- (PASS|SKIP|FAIL): (\S+)`)
	figureLine  = regexp.MustCompile(`(?m)looked at: (.*)$`)
)

// results reads what verbose tests have printed. Each may say several times what it has "looked
// at: 3 models, 7 states", and the figures are summed up. That no test ran is a failure.
func results(output []byte, err error) result {
	r := result{figures: map[string]int{}}
	for _, verdict := range verdictLine.FindAllSubmatch(output, -1) {
		switch name := string(verdict[2]); string(verdict[1]) {
		case "SKIP":
			r.skipped = append(r.skipped, name)
		case "FAIL":
			r.failed = append(r.failed, name)
		default:
			if !strings.Contains(name, "/") {
				r.figures["tests"]++
			}
		}
	}
	for _, line := range figureLine.FindAllSubmatch(output, -1) {
		for figure := range strings.SplitSeq(string(line[1]), ", ") {
			number, what, _ := strings.Cut(figure, " ")
			if n, err := strconv.Atoi(number); err == nil {
				r.figures[what] += n
			}
		}
	}
	switch {
	case r.failed == nil && err != nil:
		r.failed = []string{err.Error()}
	case bytes.Contains(output, []byte("no tests to run")):
		r.failed = append(r.failed, "there are no such tests")
	}
	return r
}

// String returns the figures, for a person.
func (r *report) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	set := "The quick set"
	if r.night {
		set = "The night set"
	} else if r.share > 1 {
		set = fmt.Sprintf("One in %d of the quick set, draw %d", r.share, r.draw)
	}
	fmt.Fprintf(&b, "%s, seeds from %d, in %v\n\n| part | looked at | found |\n|---|---|---|\n", set, r.seed, time.Since(r.began).Round(time.Second))
	for _, p := range r.parts {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", p.name, p.result.looked(), p.result.found())
	}
	return b.String() + "\n"
}

func (r result) looked() string {
	var words []string
	for _, what := range slices.Sorted(maps.Keys(r.figures)) {
		words = append(words, fmt.Sprintf("%d %s", r.figures[what], what))
	}
	if r.skipped != nil {
		words = append(words, "not tried: "+strings.Join(r.skipped, ", "))
	}
	if !r.done {
		words = append(words, "not done")
	}
	return strings.Join(words, ", ")
}

func (r result) found() string {
	if r.failed == nil {
		return "nothing"
	}
	return "**" + strings.Join(r.failed, ", ") + "**"
}

// err names the parts that have failed, and where they say why.
func (r *report) err(ctx context.Context) error {
	var errs []error
	for _, p := range r.parts {
		if p.result.failed != nil {
			errs = append(errs, fmt.Errorf("%s: %s; see %s", p.name, strings.Join(p.result.failed, ", "), r.file(p.name+".txt")))
		}
	}
	if ctx.Err() != nil {
		errs = append(errs, errors.New("stopped before the end"))
	}
	return errors.Join(errs...)
}
