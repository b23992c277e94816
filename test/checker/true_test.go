package checker_test

import (
	"fmt"
	"testing"
	"time"

	"regent/test/checker"
)

func TestTrueRecordingsPass(t *testing.T) {
	t.Parallel()
	for _, guard := range []time.Duration{0, 50 * ms} {
		for seed := range uint64(10) {
			f := fleet{Clients: 8, Elections: 2, Calls: 2000, Lost: 0.05, Guard: guard, Orders: seed%2 == 1, Ballots: seed%3 > 0, Succession: seed%4 > 0, Seed: seed}
			t.Run(fmt.Sprintf("guard %v, seed %d", guard, seed), func(t *testing.T) {
				t.Parallel()
				r := f.run(t)
				if err := checker.All(r, 50*ms, guard).Err(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
