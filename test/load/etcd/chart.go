package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Bar is a comparison in the chart: how many times as good Regent is as etcd.
type Bar struct {
	Group, Name string
	Times       Spread
}

// bars are the comparisons of rates and medians. Where less is better they are inverted.
func (r Result) bars() (all []Bar) {
	for _, c := range r.Contests {
		for _, x := range c.Comparisons() {
			if x.Measure == Late || x.Measure == Last || x.Ratio == (Spread{}) {
				continue
			}
			name := x.Row
			if len(c.Pairs) > 2 || c.Kind == Costs {
				name += ", " + x.against()
			}
			all = append(all, Bar{c.Title, name, x.times()})
		}
	}
	return all
}

// against says what is compared where a contest compares several.
func (x Comparison) against() string {
	if x.Measure == CPU || x.Measure == Memory {
		what, _, _ := strings.Cut(string(x.Measure), " ")
		return what + ", " + x.RegentName
	}
	return x.RegentName + " by " + x.EtcdName
}

func (x Comparison) times() Spread {
	if x.Measure == Rate {
		return x.Ratio
	}
	return Spread{Median: 1 / x.Ratio.Median, Least: 1 / x.Ratio.Most, Most: 1 / x.Ratio.Least}
}

// The chart's measures, in pixels.
const (
	chartWidth = 960
	labelWidth = 390
	plotRight  = 60
	lineHeight = 20
	headHeight = 44
	footHeight = 20
)

// style is for light and dark pages. The chart has a background of its own, so that it can be read
// anywhere.
const style = `.b{fill:#fff}text{font:12px system-ui,sans-serif;fill:#333}.t{font-weight:600}.m{fill:#666}.g{stroke:#ccc}.one{stroke:#666;stroke-width:1.5}` +
	`.w{stroke:#333;stroke-width:1.5}.more{fill:#2a7f62}.less{fill:#c8553d}` +
	`@media (prefers-color-scheme:dark){.b{fill:#161b22}text{fill:#ddd}.m{fill:#aaa}.g{stroke:#444}.one{stroke:#aaa}.w{stroke:#ddd}` +
	`.more{fill:#4cb894}.less{fill:#e0806a}}`

// head takes the width, the height, the style, and the positions left and right of 1.
const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="How many times as good Regent is as etcd">
<style>%s</style><rect class="b" width="100%%" height="100%%"/>
<text class="m" x="%.0f" y="16" text-anchor="end">etcd is better ←</text><text class="m" x="%.0f" y="16">→ Regent is better</text>
`

// chart draws the bars on a logarithmic scale from 1: to the right Regent is better, to the left
// etcd. A thin line spans all rounds.
func chart(bars []Bar) string {
	low, high := limits(bars)
	x := func(times float64) float64 {
		part := (math.Log2(times) - low) / (high - low)
		return labelWidth + math.Min(math.Max(part, 0), 1)*(chartWidth-labelWidth-plotRight)
	}
	var body strings.Builder
	y, group := headHeight, ""
	for _, b := range bars {
		if b.Group != group {
			group = b.Group
			fmt.Fprintf(&body, `<text class="t" x="8" y="%d">%s</text>`+"\n", y+14, html.EscapeString(group))
			y += lineHeight
		}
		draw(&body, b, y, x)
		y += lineHeight
	}
	var s strings.Builder
	fmt.Fprintf(&s, head, chartWidth, y+footHeight, style, x(1)-8, x(1)+8)
	for p := math.Ceil(low); p <= high; p++ {
		class := "g"
		if p == 0 {
			class = "one"
		}
		at := x(math.Exp2(p))
		fmt.Fprintf(&s, `<line class="%s" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/><text class="m" x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			class, at, at, headHeight-8, y, at, headHeight-12, power(p))
	}
	return s.String() + body.String() + "</svg>\n"
}

// draw draws one bar at the height y.
func draw(w *strings.Builder, b Bar, y int, x func(float64) float64) {
	class, from, to := "more", x(1), x(b.Times.Median)
	if to < from {
		class, from, to = "less", to, from
	}
	fmt.Fprintf(w, `<text x="20" y="%d">%s</text><rect class="%s" x="%.1f" y="%d" width="%.1f" height="12"/>`,
		y+14, html.EscapeString(b.Name), class, from, y+4, math.Max(to-from, 1))
	fmt.Fprintf(w, `<line class="w" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/><text x="%d" y="%d">%s ×</text>`+"\n",
		x(b.Times.Least), x(b.Times.Most), y+10, y+10, chartWidth-plotRight+8, y+14, number(b.Times.Median))
}

// limits are the powers of two between which all bars and 1 lie.
func limits(bars []Bar) (low, high float64) {
	low, high = -1, 1
	for _, b := range bars {
		low, high = math.Min(low, math.Floor(math.Log2(b.Times.Least))), math.Max(high, math.Ceil(math.Log2(b.Times.Most)))
	}
	return low, high
}

// power is 2^p as text.
func power(p float64) string {
	if p < 0 {
		return fmt.Sprintf("1/%.0f", math.Exp2(-p))
	}
	return fmt.Sprintf("%.0f", math.Exp2(p))
}
