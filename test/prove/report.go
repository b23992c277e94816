package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// report is what was looked at, for a person.
func (p *proof) report() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.table()
}

// table is the report. The mutex is held.
func (p *proof) table() string {
	var b strings.Builder
	set := "The quick set"
	if p.night {
		set = "The night set"
	} else if p.share > 1 {
		set = fmt.Sprintf("One in %d of the quick set", p.share)
	}
	fmt.Fprintf(&b, "%s, seeds from %d, in %v\n\n| part | looked at | found |\n|---|---|---|\n", set, p.state.Seed, p.state.Took.Round(time.Second))
	for _, part := range p.parts {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", part.name, p.looked(part), p.found(part))
	}
	for _, part := range p.parts {
		for _, finding := range p.state.Parts[part.name].Findings {
			fmt.Fprintf(&b, "\n- %s\n", finding)
		}
	}
	return b.String() + "\n"
}

// looked is a part's figures, the one that counts first.
func (p *proof) looked(part part) string {
	d := p.state.Parts[part.name]
	if d.LeftOut != "" {
		return "not tried: " + d.LeftOut
	}
	words := []string{fmt.Sprintf("%s of %s %s", grouped(d.Figures[part.unit]), grouped(p.wanted(part)), part.unit)}
	for _, name := range slices.Sorted(maps.Keys(d.Figures)) {
		if name != part.unit {
			words = append(words, grouped(d.Figures[name])+" "+name)
		}
	}
	if d.Nothing > 0 {
		words = append(words, fmt.Sprintf("%d steps that proved nothing", d.Nothing))
	}
	return strings.Join(words, ", ")
}

func (p *proof) found(part part) string {
	switch n := len(p.state.Parts[part.name].Findings); n {
	case 0:
		return "nothing"
	default:
		return fmt.Sprintf("**%d**", n)
	}
}

// grouped is a number with spaces between its thousands.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + " " + text[at:]
	}
	return text
}
