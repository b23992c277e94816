package main

import (
	"fmt"
	"strings"
)

// Operations returns the number of operations in all contests.
func (r Result) Operations() (n float64) {
	for _, c := range r.Contests {
		for _, l := range c.Lines() {
			n += l.Count
		}
	}
	return n
}

// Name returns the size with its unit.
func (r Row) Name(of string) string {
	name := fmt.Sprintf("%s %s", number(float64(r.Size)), of)
	if r.Size == 1 {
		name = strings.TrimSuffix(name, "s")
	}
	return name
}

// Line is the result of an entrant in a row, over all rounds.
type Line struct {
	Row, Name string
	Count     float64
	Rate      Spread
	P50, P99  Spread
	Max       float64
	CPU, Load float64 // µs for each
}

// Lines returns all lines of the contest.
func (c Contest) Lines() (all []Line) {
	for _, r := range c.Rows {
		for i := range c.Entrants {
			all = append(all, r.line(c, i))
		}
	}
	return all
}

func (r Row) line(c Contest, entrant int) Line {
	l := Line{
		Row: r.Name(c.Of), Name: c.Entrants[entrant].Name,
		Rate: spreadOf(r.values(entrant, Rate)), P50: spreadOf(r.values(entrant, Median)), P99: spreadOf(r.values(entrant, Late)),
	}
	var cpu, own float64
	for _, s := range r.Samples[entrant] {
		l.Count += s.Count
		l.Max = max(l.Max, s.Max)
		cpu, own = cpu+s.CPU, own+s.Load
	}
	l.CPU, l.Load = cpu*1e6/l.Count, own*1e6/l.Count
	return l
}
