package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"regent/emulators"
)

// proof is all parts, and how far each has come.
type proof struct {
	config
	parts []part
	rigs  *rigs

	mu    sync.Mutex // guards state, and the files
	state state
}

// state is what is known so far; a night is begun anew from it.
type state struct {
	Seed  uint64           `json:"seed"`
	Took  time.Duration    `json:"took"`
	Parts map[string]*done `json:"parts"`
}

// done is how far a part has come.
type done struct {
	Steps    uint64   `json:"steps"`   // that were begun, and are not to be made again
	Nothing  int      `json:"nothing"` // of them, proved nothing
	Figures  tally    `json:"figures"`
	Findings []string `json:"findings,omitempty"`
	LeftOut  string   `json:"leftOut,omitempty"` // why it cannot be done here
}

func newProof(c config) (*proof, error) {
	p := &proof{config: c, rigs: &rigs{dir: c.dir}, state: state{Seed: c.seed, Parts: map[string]*done{}}}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return nil, err
	}
	all := parts(c, p.rigs)
	for _, name := range c.only {
		if !slices.ContainsFunc(all, func(part part) bool { return part.name == name }) {
			return nil, fmt.Errorf("there is no part %q", name)
		}
	}
	for _, part := range all {
		if len(c.only) == 0 && (c.night || part.quick > 0) || slices.Contains(c.only, part.name) {
			p.parts = append(p.parts, part)
		}
	}
	if c.night {
		if err := p.resume(); err != nil {
			return nil, err
		}
	}
	for _, part := range p.parts {
		if p.state.Parts[part.name] == nil {
			p.state.Parts[part.name] = &done{Figures: tally{}}
		}
	}
	return p, nil
}

func (p *proof) file(name string) string { return filepath.Join(p.dir, name) }

// resume reads how far an earlier night has come.
func (p *proof) resume() error {
	text, err := os.ReadFile(p.file("state.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &p.state)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be read; remove it to begin a new night: %w", p.file("state.json"), err)
	}
	return nil
}

// save writes how far this one has come, and the report. The mutex is held.
func (p *proof) save() error {
	text, err := json.MarshalIndent(p.state, "", "  ")
	if err != nil {
		return err
	}
	next := p.file("state.json.next")
	return errors.Join(os.WriteFile(next, text, 0o644), os.Rename(next, p.file("state.json")), os.WriteFile(p.file("report.md"), []byte(p.table()), 0o644))
}

// run does all parts, those of each side one after the other.
func (p *proof) run(ctx context.Context) error {
	began := time.Now()
	before := p.state.Took
	var sides sync.WaitGroup
	errs := make([]error, 2)
	for _, s := range []side{waits, computes} {
		sides.Go(func() {
			for _, part := range p.parts {
				if part.side == s {
					errs[s] = errors.Join(errs[s], p.do(ctx, part))
				}
			}
		})
	}
	sides.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.Took = before + time.Since(began)
	return errors.Join(p.failed(), errors.Join(errs...), p.rigs.close(), p.save())
}

// do makes steps until there are enough. A night goes on after something was found.
func (p *proof) do(ctx context.Context, part part) error {
	workers := 1
	if part.side == waits {
		workers = p.together
		if part.unit == "runs" && part.name != "bolt" {
			workers = min(workers, 2) // an emulator has a machine's processors to itself, or takes its time
		}
	}
	errs := make([]error, workers)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for errs[w] == nil && ctx.Err() == nil {
				seed, more := p.next(part)
				if !more {
					return
				}
				t, err := part.step(ctx, seed)
				errs[w] = p.take(ctx, part, seed, t, err)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%s: %w", part.name, err)
	}
	return ctx.Err()
}

// wanted is how much of a part is enough.
func (p *proof) wanted(part part) int64 {
	switch {
	case p.night:
		return part.night
	case part.whole:
		return part.quick
	}
	return max(part.quick/int64(p.share), 1)
}

// next is the seed of the next step, if there is to be one. Steps that are under way count for what they will bring as far as that is known.
func (p *proof) next(part part) (seed uint64, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.state.Parts[part.name]
	const patience = 3 // steps that prove nothing, for each that should prove something
	switch {
	case d.LeftOut != "", !p.night && len(d.Findings) > 0, d.Figures[part.unit] >= p.wanted(part):
		return 0, false
	case part.unit == "runs" && int64(d.Steps)-int64(d.Nothing) >= p.wanted(part), int64(d.Nothing) > patience*p.wanted(part):
		return 0, false
	}
	d.Steps++
	return p.state.Seed + d.Steps - 1, true
}

// take takes down what a step has brought. Its error is for one that could not be made.
func (p *proof) take(ctx context.Context, part part, seed uint64, t tally, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.state.Parts[part.name]
	found, isFinding := errors.AsType[*finding](err)
	switch {
	case err == nil:
		d.Figures.add(t)
	case isFinding:
		found.part = part.name
		if found.seed == 0 {
			found.seed = seed
		}
		d.Findings = append(d.Findings, found.Error())
		fmt.Printf("FOUND in %v\n", found)
	case errors.Is(err, errNothing):
		d.Nothing++
		fmt.Printf("%s, seed %d: %v\n", part.name, seed, err)
	case errors.Is(err, errors.ErrUnsupported) && !emulators.Required():
		d.LeftOut = err.Error()
	case ctx.Err() != nil:
		d.Steps-- // it is made again
		return nil
	default:
		return err
	}
	return p.save()
}

// failed is the error of what was found, and of what was not looked for enough.
func (p *proof) failed() error {
	var what []string
	for _, part := range p.parts {
		d := p.state.Parts[part.name]
		what = append(what, d.Findings...)
		if got, want := d.Figures[part.unit], p.wanted(part); got < want && d.LeftOut == "" && len(d.Findings) == 0 {
			what = append(what, fmt.Sprintf("%s: %d %s, and %d are wanted", part.name, got, part.unit, want))
		}
	}
	if what == nil {
		return nil
	}
	return errors.New(strings.Join(what, "\n"))
}
