package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// report returns the figures, for a person.
func (p *proof) report() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	set := "The quick set"
	if p.night {
		set = "The night set"
	} else if p.share > 1 {
		set = fmt.Sprintf("One in %d of the quick set, draw %d", p.share, p.draw)
	}
	fmt.Fprintf(&b, "%s, seeds from %d, in %v\n\n| part | looked at | found |\n|---|---|---|\n", set, p.seed, time.Since(p.began).Round(time.Second))
	for _, c := range p.progress {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.name, c.looked(), c.found())
	}
	for _, c := range p.progress {
		for _, finding := range c.findings {
			fmt.Fprintf(&b, "\n- %s\n", finding)
		}
	}
	return b.String() + "\n"
}

// What a report on a page stands between.
const pageBegins, pageEnds = "<!-- report -->\n", "<!-- end of the report -->\n"

// publish replaces the report on a page.
func (p *proof) publish(page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), pageBegins)
	_, after, ends := strings.Cut(rest, pageEnds)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for a report, from %q to %q", page, strings.TrimSpace(pageBegins), strings.TrimSpace(pageEnds))
	}
	return os.WriteFile(page, []byte(before+pageBegins+p.report()+pageEnds+after), 0o644)
}

// looked returns a part's figures, the one of its unit first.
func (c *progress) looked() string {
	if c.leftOut != "" {
		return "not tried: " + c.leftOut
	}
	words := []string{fmt.Sprintf("%s of %s %s", grouped(c.figures[c.unit]), grouped(c.wanted), c.unit)}
	for _, name := range slices.Sorted(maps.Keys(c.figures)) {
		if name != c.unit {
			words = append(words, grouped(c.figures[name])+" "+name)
		}
	}
	if c.nothing > 0 {
		words = append(words, fmt.Sprintf("%d steps that proved nothing", c.nothing))
	}
	return strings.Join(words, ", ")
}

func (c *progress) found() string {
	if len(c.findings) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("**%d**", len(c.findings))
}

// grouped is a number with spaces between its thousands.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + " " + text[at:]
	}
	return text
}
