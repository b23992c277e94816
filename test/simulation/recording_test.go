package simulation_test

import (
	"testing"

	"regent/test/checker"
	"regent/test/simulation"
)

func TestWhatWasRecordedPassesEveryChecker(t *testing.T) {
	t.Parallel()
	calls := 0
	for seed := range uint64(*seeds / 3) {
		r := simulation.Run(simulation.Config{Seed: seed, Leases: 30, Record: true})
		if err := r.Err(); err != nil {
			t.Error(err)
		}
		calls += len(r.Recording.Calls)
		for _, f := range checker.All(r.Recording, r.Guard, r.Guard) {
			if err := f.Err(); err != nil {
				t.Errorf("seed %d (%s): %s: %v", seed, r.Plan, f.Name, err)
			}
		}
	}
	t.Logf("%d calls", calls)
}
