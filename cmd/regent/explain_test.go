package main

import (
	"strings"
	"testing"

	"regent/leadership"
)

func TestEveryEntryOfTheConceptsIsShortAndExplainedOnce(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	all := readConcepts()
	for _, one := range all {
		if n := strings.Count(one.text, "\n") + 1; n > 5 {
			t.Errorf("%s: %d lines, want 5 at most", one.title, n)
		}
		for _, word := range one.words {
			if seen[word] {
				t.Errorf("%q has two entries", word)
			}
			seen[word] = true
		}
	}
	if n := strings.Count(leadership.Concepts(), "\n- **"); n != len(all) {
		t.Errorf("%d entries are read, and the page has %d", len(all), n)
	}
}
