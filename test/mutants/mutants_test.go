package mutants_test

import (
	"flag"
	"strings"
	"testing"

	"regent/test/mutants"
)

var (
	named = flag.String("named", "", "plant the bugs whose names have one of these texts in them, separated by |, and run all of their tests")
	cloud = flag.Bool("cloud", false, "also those that need emulators")
)

func TestPlantedBugsAreCaught(t *testing.T) {
	if *named == "" {
		t.Skip("none is named; make prove plants them")
	}
	c := mutants.Config{Emulators: *cloud, Heard: func(v mutants.Verdict) {
		t.Log(v)
		if v.Failed() {
			t.Errorf("%s: %s", v.Outcome, v.Mutant.Name)
		}
	}}
	bugs, err := mutants.All()
	if err != nil {
		t.Fatal(err)
	}
	c.Mutants, c.Built = pick(t, bugs, strings.Split(*named, "|")...), bugs
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
