package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// proof has all parts to do, and the progress of each.
type proof struct {
	config
	began  time.Time
	before time.Duration // what the night took in earlier processes

	mu       sync.Mutex // guards the following, and the files
	progress []*progress
	state    state
}

// newProof chooses among all parts. A night goes on where an earlier one has stopped.
func newProof(c config, all []part) (*proof, error) {
	p := &proof{config: c, began: time.Now(), state: state{Seed: c.seed, Parts: map[string]*done{}}}
	chosen, err := c.choose(all)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return nil, err
	}
	if c.night {
		if err := p.resume(); err != nil {
			return nil, err
		}
		p.before = p.state.Took
	}
	for _, part := range chosen {
		p.progress = append(p.progress, &progress{
			part: part, done: p.state.of(part.name), wanted: c.wanted(part), first: c.seed, goesOn: c.night || part.things > 0,
			underWay: map[uint64]bool{},
		})
	}
	return p, nil
}

// choose returns the requested parts of the set.
func (c config) choose(all []part) (chosen []part, err error) {
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
			chosen = append(chosen, part)
		}
	}
	return chosen, nil
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
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.failed(ctx), errors.Join(errs...), p.save())
}

// do makes steps until the figure is reached. Its error is for files that could not be written.
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
				t, err := c.step(ctx, c.seed(n))
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

func (p *proof) next(c *progress) (n uint64, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return c.next()
}

func (p *proof) take(ctx context.Context, c *progress, n uint64, t tally, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if told := c.take(ctx, n, t, err); told != "" {
		fmt.Println(told)
	}
	return p.save()
}

// failed returns the error of run. Call with the mutex held.
func (p *proof) failed(ctx context.Context) error {
	var what []string
	for _, c := range p.progress {
		what = append(what, c.Findings...)
		switch {
		case c.err != nil:
			what = append(what, c.err.Error())
		case ctx.Err() == nil && !c.enough() && c.leftOut == "" && len(c.Findings) == 0:
			what = append(what, fmt.Sprintf("%s: %d %s, and %d are wanted", c.name, c.Figures[c.unit], c.unit, c.wanted))
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
