package mutants

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// patch is a unified diff of one file. A hunk is found by its lines and not by its line numbers, so
// that a patch still applies after changes elsewhere in the file.
type patch struct {
	file  string // from the root of the module
	hunks []hunk
}

// hunk is one change: context, removed and added lines, each with its mark (' ', '-' or '+').
type hunk []string

// parsePatch reads a unified diff.
func parsePatch(diff string) (p patch, err error) {
	lines := strings.Split(strings.TrimRight(diff, "\n"), "\n")
	if len(lines) < 3 {
		return p, errors.New("there is no diff")
	}
	from, isFrom := strings.CutPrefix(lines[0], "--- a/")
	to, isTo := strings.CutPrefix(lines[1], "+++ b/")
	if !isFrom || !isTo || from != to {
		return p, fmt.Errorf("the diff must begin with --- a/FILE and +++ b/FILE of one file, not %q and %q", lines[0], lines[1])
	}
	p.file = from
	for _, line := range lines[2:] {
		switch {
		case strings.HasPrefix(line, "@@ "):
			p.hunks = append(p.hunks, nil)
			continue
		case len(p.hunks) == 0:
			return p, fmt.Errorf("%q stands before the first hunk", line)
		case line == "": // an empty context line whose mark an editor has removed
			line = " "
		case !strings.Contains(" +-", line[:1]):
			return p, fmt.Errorf("%q is no line of a diff", line)
		}
		last := &p.hunks[len(p.hunks)-1]
		*last = append(*last, line)
	}
	for _, h := range p.hunks {
		if slices.Equal(h.before(), h.after()) {
			return p, errors.New("a hunk changes nothing")
		}
	}
	return p, nil
}

// before returns the lines that a hunk replaces.
func (h hunk) before() []string { return h.without('+') }

// after returns the lines that replace them.
func (h hunk) after() []string { return h.without('-') }

func (h hunk) without(mark byte) (lines []string) {
	for _, line := range h {
		if line[0] != mark {
			lines = append(lines, line[1:])
		}
	}
	return lines
}

// core returns the hunk from its first changed line to its last, with at most so many lines of
// context before and after them.
func (h hunk) core(before, after int) hunk {
	changed := func(line string) bool { return line[0] != ' ' }
	first := slices.IndexFunc(h, changed)
	last := len(h) - 1
	for !changed(h[last]) {
		last--
	}
	return h[max(0, first-before):min(len(h), last+1+after)]
}

// apply returns the source with the patch applied. Each hunk's lines must stand in it exactly once.
func (p patch) apply(source string) (string, error) {
	lines := strings.Split(source, "\n")
	for i, h := range p.hunks {
		found := find(lines, h.before())
		if len(found) != 1 {
			return "", fmt.Errorf("the lines of hunk %d stand %d times in %s, and must stand there once", i+1, len(found), p.file)
		}
		lines = slices.Replace(lines, found[0], found[0]+len(h.before()), h.after()...)
		if n := len(find(lines, h.after())); n != 1 {
			return "", fmt.Errorf("with hunk %d applied its new lines stand %d times in %s, and must stand there once", i+1, n, p.file)
		}
	}
	return strings.Join(lines, "\n"), nil
}

// find returns the places of the block in the lines; none if the block is empty.
func find(lines, block []string) (at []int) {
	if len(block) == 0 {
		return nil
	}
	for i := range len(lines) - len(block) + 1 {
		if slices.Equal(lines[i:i+len(block)], block) {
			at = append(at, i)
		}
	}
	return at
}

// fresh returns the patch of the source with as much context around each hunk as is needed to find
// it, and without line numbers. The patch must apply.
func (p patch) fresh(source string) (patch, string) {
	lines, text := strings.Split(source, "\n"), &strings.Builder{}
	fmt.Fprintf(text, "--- a/%s\n+++ b/%s\n", p.file, p.file)
	now := patch{file: p.file}
	for _, h := range p.hunks {
		at := find(lines, h.before())[0]
		core := h.core(0, 0)
		at += slices.IndexFunc(h, func(line string) bool { return line[0] != ' ' })
		h = surrounded(core, lines, at)
		now.hunks = append(now.hunks, h)
		fmt.Fprintf(text, "@@ @@\n%s\n", strings.Join(h, "\n"))
	}
	return now, text.String()
}

// surrounded returns a hunk whose first changed line belongs at that place with context around it,
// one line or more, so that it stands there only once before and after it is applied.
func surrounded(core hunk, lines []string, at int) hunk {
	end := at + len(core.before())
	for n := 1; ; n++ {
		first, last := max(0, at-n), min(len(lines), end+n)
		var h hunk
		for _, line := range lines[first:at] {
			h = append(h, " "+line)
		}
		h = append(h, core...)
		for _, line := range lines[end:last] {
			h = append(h, " "+line)
		}
		once := len(find(lines, h.before())) == 1
		applied := slices.Replace(slices.Clone(lines), first, last, h.after()...)
		if once && len(find(applied, h.after())) == 1 || first == 0 && last == len(lines) {
			return h
		}
	}
}
