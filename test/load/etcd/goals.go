package main

import (
	"slices"
	"strconv"
)

// goalSizes returns the sizes at which goals are judged, in the order of the report.
func goalSizes() []int { return []int{64, 1} }

// at64and1 are goals for the ratio at 64 connections, and at one.
func at64and1(many, one float64) []Goal { return []Goal{{64, many}, {1, one}} }

// Judged is one line of the goals.
type Judged struct {
	Name     string
	Verdicts []Verdict // one for each of goalSizes
}

// Verdict is a goal at one size, and whether it is met.
type Verdict struct {
	Where  string // such as "64 connections"
	Goal   string // such as "≥ 3"
	Ratio  Spread // Regent's by the other's
	Met    bool
	Reason string // why it is missed, and how to meet it; "" if it is met, or if none is written down
}

// Goals judges all pairs that have a goal, by the median ratio of the rounds.
func (r Result) Goals() (all []Judged) {
	for _, c := range r.Contests {
		for _, p := range c.Pairs {
			line := Judged{Name: p.Name}
			for _, g := range p.Goals {
				line.Verdicts = append(line.Verdicts, c.judge(p, g))
			}
			all = append(all, line)
		}
	}
	return all
}

func (c Contest) judge(p Pair, g Goal) Verdict {
	row := c.Rows[slices.IndexFunc(c.Rows, func(r Row) bool { return r.Size == g.Size })]
	v := Verdict{Where: row.Name(c.Of), Ratio: spreadOf(ratios(row.values(p.Regent, p.Measure), row.values(p.Other, p.Measure)))}
	goal := strconv.FormatFloat(g.Ratio, 'g', -1, 64)
	if p.Measure == Rate {
		v.Goal, v.Met = "≥ "+goal, v.Ratio.Median >= g.Ratio
	} else {
		v.Goal, v.Met = "≤ "+goal, v.Ratio.Median <= g.Ratio
	}
	if !v.Met {
		v.Reason = reason(p.Name, g.Size)
	}
	return v
}
