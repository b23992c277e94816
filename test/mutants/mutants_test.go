package mutants_test

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/test/machine"
	"regent/test/mutants"
)

var (
	named = flag.String("named", "", "plant the bugs whose names have one of these texts in them, separated by |, and run all of their tests")
	quick = flag.Bool("quick", false, "plant those of the quick set, and run the first of their tests")
	share = flag.Int("share", 1, "plant one in so many of the quick set")
	draw  = flag.Int("draw", 0, "which of these shares")
	cloud = flag.Bool("cloud", false, "also those that need emulators")
)

func TestPlantedBugsAreCaught(t *testing.T) {
	if *named == "" && !*quick {
		t.Skip("none is named; make prove plants them")
	}
	c := mutants.Config{Quick: *quick, Emulators: *cloud, Heard: func(v mutants.Verdict) {
		t.Logf("%v\nlooked at: 1 bugs, 1 %s", v, v.Outcome)
		if v.Failed() {
			t.Errorf("%s: %s", v.Outcome, v.Mutant.Name)
		}
	}}
	bugs, err := mutants.All()
	require.NoError(t, err)
	if c.Mutants, c.Built = bugs, bugs; *quick {
		some := slices.DeleteFunc(slices.Clone(bugs), func(m mutants.Mutant) bool { return !m.Quick })
		c.Mutants = machine.Draw(some, *share, *draw)
		c.Built = c.Mutants
	}
	if *named != "" {
		c.Mutants = pick(t, c.Mutants, strings.Split(*named, "|")...)
	}
	if _, err := mutants.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// pick returns the bugs that have one of the texts in their names.
func pick(t *testing.T, bugs []mutants.Mutant, texts ...string) (found []mutants.Mutant) {
	t.Helper()
	for _, text := range texts {
		before := len(found)
		for _, m := range bugs {
			if strings.Contains(m.Name, text) {
				found = append(found, m)
			}
		}
		if len(found) == before {
			t.Fatalf("there is no bug %q", text)
		}
	}
	return found
}
