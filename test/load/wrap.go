package load

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// proseWidth is how wide a line of prose in a report may be.
const proseWidth = 120

var (
	fence  = regexp.MustCompile("^\\s*```")
	item   = regexp.MustCompile(`^\s*(?:[-*+]|\d+[.)])\s+`)
	fixed  = regexp.MustCompile(`^(?:\s*$|\s*\||#|    )`) // blank, table, heading, code
	marker = regexp.MustCompile(`^(?:[-*+>|]|#+|\d+[.)])$`)
)

// Wrap returns the Markdown with its paragraphs and list items wrapped. Tables, headings and code
// stay as they are.
func Wrap(markdown string) string {
	var out, words []string
	var first, rest string // how the lines of the present paragraph begin
	flush := func() {
		out = append(out, wrapWords(first, rest, words)...)
		words = nil
	}
	code := false
	for line := range strings.SplitSeq(markdown, "\n") {
		if fence.MatchString(line) || code || fixed.MatchString(line) {
			flush()
			out = append(out, line)
			code = code != fence.MatchString(line)
			continue
		}
		if start := item.FindString(line); start != "" || len(words) == 0 {
			flush()
			first, rest = start, strings.Repeat(" ", len(start))
			line = line[len(start):]
		}
		for word := range strings.FieldsSeq(line) {
			if len(words) > 0 && marker.MatchString(word) {
				words[len(words)-1] += " " + word // must not begin a line, where it means a list
				continue
			}
			words = append(words, word)
		}
	}
	flush()
	return strings.Join(out, "\n")
}

func wrapWords(first, rest string, words []string) (lines []string) {
	line := first
	for i, word := range words {
		if i > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > proseWidth {
			lines, line = append(lines, line), rest+word
			continue
		}
		if i > 0 {
			line += " "
		}
		line += word
	}
	if len(words) > 0 {
		lines = append(lines, line)
	}
	return lines
}
