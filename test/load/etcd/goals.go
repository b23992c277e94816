package main

import "strconv"

// goalSizes are the sizes at which goals are judged, in the order of the report.
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
	Goal   string // such as "≥ 3"; "" for none
	Ratio  Spread // Regent's by the other's
	Rounds int    // that have a ratio; with none nothing was measured
	Met    bool
	Reason string // why it is missed, and how to meet it; "" if it is met, or if none is written down
}

// Goals judges all that have a goal. The ratio that counts is the median of the rounds.
func (r Result) Goals() (all []Judged) {
	for _, c := range r.Contests {
		for _, p := range c.Pairs {
			if p.Name == "" {
				continue
			}
			line := Judged{Name: p.Name}
			for _, size := range goalSizes() {
				line.Verdicts = append(line.Verdicts, c.judge(p, size))
			}
			all = append(all, line)
		}
	}
	return all
}

// Missed is a goal that was not reached, at one or more sizes for the same reason.
type Missed struct {
	Name   string
	Where  []string
	Reason string // "" if none is written down
}

// Missed returns the goals that were not reached, and why.
func (r Result) Missed() (all []Missed) {
	for _, line := range r.Goals() {
		for _, v := range line.Verdicts {
			if v.Goal == "" || v.Met {
				continue
			}
			if last := len(all) - 1; last >= 0 && all[last].Name == line.Name && all[last].Reason == v.Reason {
				all[last].Where = append(all[last].Where, v.Where)
				continue
			}
			all = append(all, Missed{line.Name, []string{v.Where}, v.Reason})
		}
	}
	return all
}

func (c Contest) judge(p Pair, size int) Verdict {
	goal := p.goal(size)
	if goal == 0 {
		return Verdict{}
	}
	v := Verdict{Goal: p.Measure.bound() + " " + strconv.FormatFloat(goal, 'g', -1, 64), Where: Row{Size: size}.Name(c.Of)}
	for _, r := range c.Rows {
		if r.Size != size {
			continue
		}
		all := ratios(r.values(p.Regent, p.Measure), r.values(p.Other, p.Measure))
		v.Ratio, v.Rounds = spreadOf(all), len(all)
	}
	switch {
	case v.Rounds == 0:
	case p.Measure == Rate:
		v.Met = v.Ratio.Median >= goal
	default:
		v.Met = v.Ratio.Median <= goal
	}
	if !v.Met {
		v.Reason = reason(p.Name, size)
	}
	return v
}

// bound says on which side of its goal a ratio should be.
func (m Measure) bound() string {
	if m == Rate {
		return "≥"
	}
	return "≤"
}
