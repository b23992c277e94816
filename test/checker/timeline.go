package checker

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"regent/leadership"
)

// The measures of a timeline, in pixels.
const (
	chartWidth = 1200
	nameWidth  = 160
	rowHeight  = 18
)

// Timeline draws one election as SVG: a row for each token with its lease, by the store's history, and the beliefs in it; one for each caller, with
// its calls, green if done, grey if refused, red if nobody knows; and the faults as shades behind all. The store's time is placed on the recording's
// clock by the answer that came fastest.
func Timeline(w io.Writer, r Recording, e leadership.Election) error {
	truth, _ := truthOf(r.History)
	c := &chart{calls: callsOf(r.Calls, e), offset: offsetOf(r.Calls)}
	c.measure(r, e)
	for _, f := range r.Faults {
		c.shade(f)
	}
	promises := promisesOf(c.calls)
	for _, t := range truth.terms(e) {
		c.term(t, promises[t.id()], r.Beliefs)
	}
	c.callers()
	return c.write(w, e)
}

// chart is a drawing that grows downwards.
type chart struct {
	calls  []Call
	offset time.Time // the store's time at the recording's zero
	from   time.Duration
	until  time.Duration
	faults []string
	rows   []string
	count  int
}

// offsetOf compares the two clocks.
func offsetOf(calls []Call) time.Time {
	var zero time.Time
	fastest := Forever
	for _, c := range calls {
		if c.shows() && c.Answered-c.Asked < fastest {
			fastest = c.Answered - c.Asked
			zero = c.at().Add(-c.Asked - fastest/2)
		}
	}
	return zero
}

// measure finds the time that there is to draw.
func (c *chart) measure(r Recording, e leadership.Election) {
	c.from = Forever
	reach := func(from, until time.Duration) {
		c.from = min(c.from, from)
		if until != Forever {
			c.until = max(c.until, until)
		}
	}
	for _, call := range c.calls {
		reach(call.Asked, call.Answered)
	}
	for _, b := range r.Beliefs {
		if b.Election == e {
			reach(b.From, b.Until)
		}
	}
	c.from = min(c.from, c.until)
	c.until = max(c.until, c.from+1)
}

// x is the place of a moment.
func (c *chart) x(at time.Duration) float64 {
	at = min(max(at, c.from), c.until)
	return nameWidth + (chartWidth-nameWidth)*float64(at-c.from)/float64(c.until-c.from)
}

// when is a moment of the store's time on the recording's clock.
func (c *chart) when(at time.Time) time.Duration { return at.Sub(c.offset) }

// row begins a row.
func (c *chart) row(name string) {
	c.count++
	c.rows = append(c.rows, fmt.Sprintf(`<text x="4" y="%d">%s</text>`, c.count*rowHeight+12, html.EscapeString(name)))
}

// bar draws a time in the present row; top and height are parts of it.
func (c *chart) bar(from, until time.Duration, top, height int, color, title string) {
	x := c.x(from)
	c.rows = append(c.rows, fmt.Sprintf(`<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"><title>%s</title></rect>`,
		x, c.count*rowHeight+top, max(c.x(until)-x, 1), height, color, html.EscapeString(title)))
}

func (c *chart) shade(f Fault) {
	x := c.x(f.From)
	c.faults = append(c.faults, fmt.Sprintf(`<rect x="%.1f" y="0" width="%.1f" height="100%%" fill="#f5d9a8" opacity="0.5"><title>%s, %v to %v</title></rect>`,
		x, max(c.x(f.Until)-x, 1), html.EscapeString(f.Name), f.From, f.Until))
}

// term draws the lease above and the beliefs in it below.
func (c *chart) term(t term, promised time.Time, beliefs []Belief) {
	c.row(fmt.Sprintf("%d %s", t.granted.Token, t.granted.LeaderID))
	end, title := later(promised, t.granted.At), shown(t.granted)
	if t.over() {
		end, title = t.ended.At, title+"; "+shown(t.ended)
	}
	c.bar(c.when(t.granted.At), c.when(end), 2, 7, "#4a78b5", title)
	for _, b := range beliefs {
		if b.Election == t.granted.Election && b.Token == t.granted.Token {
			c.bar(b.From, b.Until, 10, 5, "#8a5fb0", fmt.Sprintf("%s believes, %v to %v", b.Who, b.From, b.Until))
		}
	}
}

func (c *chart) callers() {
	by := make(map[string][]Call)
	for _, call := range c.calls {
		who := cmp.Or(call.Caller, string(call.Candidate), "?")
		by[who] = append(by[who], call)
	}
	for _, who := range slices.Sorted(maps.Keys(by)) {
		c.row(who)
		for _, call := range by[who] {
			color := "#c03b3b"
			switch {
			case call.done():
				color = "#3f9a55"
			case call.refused():
				color = "#9a9a9a"
			}
			c.bar(call.Asked, call.Answered, 4, 10, color, call.String())
		}
	}
}

func (c *chart) write(w io.Writer, e leadership.Election) error {
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">
<rect width="100%%" height="100%%" fill="white"/>
%s
<text x="4" y="12" font-weight="bold">%s, %v to %v</text>
%s
</svg>
`, chartWidth+nameWidth/8, (c.count+1)*rowHeight+4, strings.Join(c.faults, "\n"), html.EscapeString(string(e)), c.from, c.until, strings.Join(c.rows, "\n"))
	return err
}
