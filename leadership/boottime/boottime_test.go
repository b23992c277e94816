package boottime_test

import (
	"testing"
	"time"

	"regent/leadership/boottime"
)

func TestTheClockGoesOnAndNeverBack(t *testing.T) {
	t.Parallel()
	const rounds = 1000
	start, first := time.Now(), boottime.Now()
	last := first
	for range rounds {
		now := boottime.Now()
		if now < last {
			t.Fatalf("the clock went from %v back to %v", last, now)
		}
		last = now
	}
	if passed := time.Since(start); last == first || last-first > passed {
		t.Errorf("the clock advanced by %v while %v passed", last-first, passed)
	}
}
