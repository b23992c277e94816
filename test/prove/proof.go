package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"regent/emulators/need"
)

// Limits that end a part without progress.
const (
	mostFindings = 20 // more of them tell nothing new
	mostInVain   = 10 // steps in a row that prove nothing
)

// proof has all parts to do, and the progress of each.
type proof struct {
	config
	began time.Time

	mu       sync.Mutex // guards progress, and the report
	progress []*progress
}

// progress is a part under way. The mutex of the proof guards it.
type progress struct {
	part
	wanted int64  // of the unit
	goesOn bool   // after a finding
	begun  uint64 // steps

	underWay int // steps that have no verdict yet
	figures  tally
	findings []string
	nothing  int    // steps that proved nothing
	inVain   int    // of them, since one that did
	leftOut  string // why this machine cannot do it
	err      error  // of a step that could not be made
}

// newProof chooses among all parts.
func newProof(c config, all []part) (*proof, error) {
	p := &proof{config: c, began: time.Now()}
	for _, name := range c.only {
		at := slices.IndexFunc(all, func(part part) bool { return part.name == name })
		switch {
		case at < 0:
			return nil, usage(fmt.Sprintf("there is no part %q", name))
		case c.wanted(all[at]) == 0:
			return nil, usage(fmt.Sprintf("%s is in the night set alone", name))
		}
	}
	for _, part := range all {
		if c.wanted(part) > 0 && (len(c.only) == 0 || slices.Contains(c.only, part.name)) {
			p.progress = append(p.progress, &progress{part: part, wanted: c.wanted(part), goesOn: c.night || part.things > 0, figures: tally{}})
		}
	}
	return p, os.MkdirAll(c.dir, 0o755)
}

// wanted is how much of a part is enough.
func (c config) wanted(part part) int64 {
	switch {
	case c.night:
		return part.night
	case part.things > 0 || part.quick == 0:
		return part.quick
	}
	return max(part.quick/int64(c.share), 1)
}

// run does all parts, those of each side one after the other. Its error names the findings, and the
// parts that did not reach their figures.
func (p *proof) run(ctx context.Context) error {
	errs := make([]error, 2)
	var sides sync.WaitGroup
	for _, s := range []side{waits, computes} {
		sides.Go(func() {
			for _, c := range p.progress {
				if c.side == s {
					errs[s] = errors.Join(errs[s], p.do(ctx, c))
				}
			}
		})
	}
	sides.Wait()
	return errors.Join(p.failed(ctx), errors.Join(errs...), p.save())
}

// do makes steps until the figure is reached. Its error is for a report that could not be written.
func (p *proof) do(ctx context.Context, c *progress) error {
	errs := make([]error, p.workers(c.part))
	var all sync.WaitGroup
	for w := range errs {
		all.Go(func() {
			for errs[w] == nil && ctx.Err() == nil {
				n, more := p.next(c)
				if !more {
					return
				}
				t, err := c.step(ctx, n)
				errs[w] = p.take(ctx, c, n, t, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// workers is how many steps of a part are made side by side.
func (p *proof) workers(part part) int {
	switch {
	case part.side == computes || part.name == "tests": // which take turns by themselves
		return 1
	case part.unit == "runs" && part.name != "file":
		return 2 // an emulator has a machine's processors to itself, or takes its time
	}
	return 3
}

// enough reports whether the wanted figure is reached.
func (c *progress) enough() bool { return c.figures[c.unit] >= c.wanted }

// over reports whether no more steps are to be made, enough or not.
func (c *progress) over() bool {
	found := len(c.findings)
	return c.enough() || c.leftOut != "" || c.err != nil || found > 0 && !c.goesOn || found >= mostFindings || c.inVain >= mostInVain
}

// next begins the next step, if there is to be one, and returns its argument. There is none while
// the steps under way may be enough: their workers ask again.
func (p *proof) next(c *progress) (argument uint64, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.over() || c.figures[c.unit]+c.each*int64(c.underWay) >= c.wanted || c.things > 0 && c.begun == uint64(c.things) {
		return 0, false
	}
	c.begun++
	c.underWay++
	if c.things > 0 {
		return c.begun, true
	}
	return p.seed + c.begun - 1, true
}

// take notes the result of a step. One that was cut off has none.
func (p *proof) take(ctx context.Context, c *progress, argument uint64, t tally, err error) error {
	p.mu.Lock()
	c.underWay--
	found, isFinding := errors.AsType[*finding](err)
	switch {
	case err == nil:
		c.inVain = 0
		c.figures.add(t)
	case isFinding:
		found.part = c.name
		if c.things == 0 && found.seed == 0 {
			found.seed = argument
		}
		c.findings = append(c.findings, found.Error())
		c.figures.add(t)
		fmt.Printf("FOUND in %v\n", found)
	case ctx.Err() != nil:
	case errors.Is(err, errNothing):
		c.nothing++
		c.inVain++
		fmt.Printf("%s, seed %d: %v\n", c.name, argument, err)
	case errors.Is(err, errors.ErrUnsupported) && !need.All():
		c.leftOut = err.Error()
	default:
		c.err = errors.Join(c.err, fmt.Errorf("%s: %w", c.name, err))
	}
	p.mu.Unlock()
	return p.save()
}

// save writes the report.
func (p *proof) save() error {
	return os.WriteFile(filepath.Join(p.dir, "report.md"), []byte(p.report()), 0o644)
}

// failed returns the error of run.
func (p *proof) failed(ctx context.Context) error {
	var what []string
	for _, c := range p.progress {
		what = append(what, c.findings...)
		switch {
		case c.err != nil:
			what = append(what, c.err.Error())
		case ctx.Err() == nil && !c.enough() && c.leftOut == "" && len(c.findings) == 0:
			what = append(what, fmt.Sprintf("%s: %d %s, and %d are wanted", c.name, c.figures[c.unit], c.unit, c.wanted))
		}
	}
	if ctx.Err() != nil && slices.ContainsFunc(p.progress, func(c *progress) bool { return !c.over() }) {
		what = append(what, "stopped before the end")
	}
	if what == nil {
		return nil
	}
	return errors.New(strings.Join(what, "\n"))
}
