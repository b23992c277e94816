package checker_test

import (
	"fmt"
	"testing"
	"time"

	"regent/test/checker"
)

func BenchmarkLinear(b *testing.B) {
	for _, guard := range []time.Duration{0, 50 * ms} {
		b.Run(fmt.Sprintf("guard %v", guard), func(b *testing.B) {
			r := fleet{Clients: 32, Elections: 1, Calls: 20_000, Lost: 0.05, Guard: guard, Seed: 1}.run(b)
			for b.Loop() {
				if err := checker.Linear(r, guard).Err(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
