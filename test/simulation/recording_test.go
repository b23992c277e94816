package simulation_test

import (
	"cmp"
	"testing"

	"regent/test/checker"
	"regent/test/machine"
	"regent/test/simulation"
)

func TestWhatWasRecordedPassesEveryChecker(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	// Seed 28 is the first that catches the planted line-lease-made-up-from-event.
	for seed := range cmp.Or(*seeds, machine.Size(3, 30)) {
		seed := *first + uint64(seed)
		r := simulation.Run(simulation.Config{Seed: seed, Leases: 30, Record: true})
		if err := r.Err(); err != nil {
			t.Error(err)
		}
		count(counts, r.Recording)
		for _, f := range checker.All(r.Recording, r.Guard, r.Guard) {
			if f.Name == "SE" {
				counts["grants of seats"] += f.Checked
			}
			if err := f.Err(); err != nil {
				t.Errorf("seed %d (%s): %s: %v", seed, r.Plan, f.Name, err)
			}
		}
	}
	for what, n := range counts {
		if t.Logf("looked at: %d recorded %s", n, what); n == 0 && (what != "grants of seats" || runs() >= 60) {
			t.Errorf("no %s were recorded", what)
		}
	}
}

// count counts what a checker needs something of: of the strong reads those that were answered.
func count(counts map[string]int, r checker.Recording) {
	reads := 0
	for _, c := range r.Calls {
		if c.Verb == checker.Get && c.Answer != nil && c.Code == "" {
			reads++
		}
	}
	for what, n := range map[string]int{"calls": len(r.Calls), "strong reads": reads, "beliefs": len(r.Beliefs)} {
		counts[what] += n
	}
}
