package main

import (
	"context"
	"errors"
	"fmt"

	"regent/emulators/need"
)

// Limits that end a part without progress.
const (
	mostFindings = 20 // more of them tell nothing new
	mostInVain   = 10 // steps in a row that prove nothing
)

// progress is a part under way. The mutex of the proof guards it.
type progress struct {
	part
	*done         // the kept part: only it survives this process
	wanted int64  // of the unit
	first  uint64 // the seed of step 1
	goesOn bool   // after a finding

	underWay map[uint64]bool // steps that have no verdict yet
	inVain   int             // steps that proved nothing, since one that did
	leftOut  string          // why this machine cannot do it
	err      error           // of a step that could not be made
}

// done is how far a part has come.
type done struct {
	Steps    steps    `json:"steps"`   // that have a verdict, and are never made again
	Nothing  int      `json:"nothing"` // of them, proved nothing
	Figures  tally    `json:"figures"`
	Findings []string `json:"findings,omitempty"`
}

// enough reports whether the wanted figure is reached.
func (c *progress) enough() bool { return c.Figures[c.unit] >= c.wanted }

// over reports whether no more steps are to be made, enough or not.
func (c *progress) over() bool {
	found := len(c.Findings)
	return c.enough() || c.leftOut != "" || c.err != nil || found > 0 && !c.goesOn || found >= mostFindings || c.inVain >= mostInVain
}

// next begins the lowest step that has no verdict and is not under way, if there is to be one.
// There is none while the steps under way may be enough: their workers ask again.
func (c *progress) next() (n uint64, more bool) {
	if c.over() || c.Figures[c.unit]+c.each*int64(len(c.underWay)) >= c.wanted {
		return 0, false
	}
	for n = c.Steps.Through + 1; c.Steps.has(n) || c.underWay[n]; {
		n++
	}
	if c.things > 0 && n > uint64(c.things) {
		return 0, false
	}
	c.underWay[n] = true
	return n, true
}

// seed returns the argument of a step.
func (c *progress) seed(n uint64) uint64 {
	if c.things > 0 {
		return n
	}
	return c.first + n - 1
}

// take notes the result of a step, and returns the line to print. A step without a verdict is made
// again, by this process or the next.
func (c *progress) take(ctx context.Context, n uint64, t tally, err error) (told string) {
	delete(c.underWay, n)
	found, isFinding := errors.AsType[*finding](err)
	switch {
	case err == nil:
		c.inVain = 0
	case isFinding:
		found.part = c.name
		if c.things == 0 && found.seed == 0 {
			found.seed = c.seed(n)
		}
		c.Findings = append(c.Findings, found.Error())
		told = fmt.Sprintf("FOUND in %v", found)
	case ctx.Err() != nil:
		return ""
	case errors.Is(err, errNothing):
		c.Nothing++
		c.inVain++
		told = fmt.Sprintf("%s, seed %d: %v", c.name, c.seed(n), err)
	case errors.Is(err, errors.ErrUnsupported) && !need.All():
		c.leftOut = err.Error()
		return ""
	default:
		c.err = errors.Join(c.err, fmt.Errorf("%s: %w", c.name, err))
		return ""
	}
	c.Figures.add(t)
	c.Steps.add(n)
	return told
}
