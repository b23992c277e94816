package main

import (
	"fmt"
	"strings"
)

// Comparison is a pair in a row.
type Comparison struct {
	Contest, Row string
	RegentName   string
	EtcdName     string
	Measure      Measure
	Regent, Etcd Spread
	Ratio        Spread // of the rounds' ratios, Regent's by etcd's
	Goal         string // "" for none
	Met          bool
	WhatItTakes  float64
}

// Comparisons are all of the contest.
func (c Contest) Comparisons() (all []Comparison) {
	for _, p := range c.Pairs {
		for _, r := range c.Rows {
			all = append(all, c.compare(p, r))
		}
	}
	return all
}

func (c Contest) compare(p Pair, r Row) Comparison {
	ours, theirs := r.values(p.Regent, p.Measure), r.values(p.Etcd, p.Measure)
	x := Comparison{
		Contest: c.Title, Row: r.Name(c.Of), RegentName: c.Entrants[p.Regent].Name, EtcdName: c.Entrants[p.Etcd].Name,
		Measure: p.Measure, Regent: spreadOf(ours), Etcd: spreadOf(theirs), Ratio: spreadOf(ratios(ours, theirs)),
	}
	if p.Goal.Size != r.Size {
		return x
	}
	switch {
	case p.Goal.Most > 0:
		x.Goal, x.Met = fmt.Sprintf("at most %s ms", number(p.Goal.Most)), x.Regent.Most <= p.Goal.Most
	case p.Measure == Rate:
		x.Goal, x.Met = fmt.Sprintf("at least %s × etcd", number(p.Goal.Ratio)), x.Ratio.Median >= p.Goal.Ratio
	default:
		x.Goal, x.Met = fmt.Sprintf("at most %s × etcd", number(p.Goal.Ratio)), x.Ratio.Median <= p.Goal.Ratio
	}
	return x
}

// Goals are the comparisons that have one.
func (r Result) Goals() (all []Comparison) {
	for _, c := range r.Contests {
		for _, x := range c.Comparisons() {
			if x.Goal != "" {
				all = append(all, x)
			}
		}
	}
	return all
}

// Errors is how many operations of all have failed.
func (r Result) Errors() (n int) {
	for _, c := range r.Contests {
		for _, row := range c.Rows {
			for i := range c.Entrants {
				n += row.Line(c, i).Errors
			}
		}
	}
	return n
}

// Operations is how many there were of all.
func (r Result) Operations() (n float64) {
	for _, c := range r.Contests {
		for _, row := range c.Rows {
			for i := range c.Entrants {
				n += row.Line(c, i).Count
			}
		}
	}
	return n
}

// Name is how many of something, and the aspect.
func (r Row) Name(of string) string {
	name := fmt.Sprintf("%s %s", number(float64(r.Size)), of)
	if r.Size == 1 {
		name = strings.TrimSuffix(name, "s")
	}
	if r.Aspect != "" {
		name += ", " + r.Aspect
	}
	return name
}

// Line is what an entrant did in a row, all rounds together.
type Line struct {
	Row, Name     string
	Count         float64
	Errors        int
	Failure       string
	Rate          Spread
	P50, P99, Max Spread
	CPU, Load     float64 // µs for each
	Minute        Spread  // CPU seconds a minute for 1,000
	Memory        Spread  // MiB for 1,000
	Empty         Spread  // MiB
}

// Lines are those of a contest.
func (c Contest) Lines() (all []Line) {
	for _, r := range c.Rows {
		for i := range c.Entrants {
			all = append(all, r.Line(c, i))
		}
	}
	return all
}

// Line is that of one entrant.
func (r Row) Line(c Contest, entrant int) Line {
	l := Line{
		Row: r.Name(c.Of), Name: c.Entrants[entrant].Name,
		Rate: spreadOf(r.values(entrant, Rate)),
		P50:  spreadOf(r.values(entrant, Median)), P99: spreadOf(r.values(entrant, Late)), Max: spreadOf(r.values(entrant, Last)),
	}
	if c.Kind == Costs {
		l.Minute, l.Memory = spreadOf(r.values(entrant, CPU)), spreadOf(r.values(entrant, Memory))
	}
	var cpu, load float64
	var empty []float64
	for _, s := range r.Samples[entrant] {
		l.Count += s.Count
		l.Errors += s.Errors
		if l.Failure == "" {
			l.Failure = s.Failure
		}
		cpu, load, empty = cpu+s.CPU, load+s.Load, append(empty, s.Empty)
	}
	each := 1e6 / l.Count
	l.CPU, l.Load, l.Empty = cpu*each, load*each, spreadOf(empty)
	return l
}
