package leadership_test

import (
	"testing"
	"time"

	"regent/leadership"
)

func TestADeadlineCountsFromBeforeTheRequestAndAllowsForDriftAndForStopping(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                       string
		sent, waited, left, margin time.Duration
		want                       time.Duration
	}{
		{"a lease of 30 s", time.Hour, 0, 30 * time.Second, time.Second, time.Hour + 28970*time.Millisecond - 1},
		{"one that was waited for", time.Hour, time.Minute, 30 * time.Second, time.Second, time.Hour + 88850060*time.Microsecond - 2 + 1},
		{"nothing left", time.Hour, 0, 0, 0, time.Hour},
		{"a margin that is longer than the lease", time.Hour, 0, time.Second, 2 * time.Second, time.Hour - 1001*time.Millisecond - 1},
	} {
		if got := leadership.Deadline(c.sent, c.waited, c.left, c.margin); got != c.want {
			t.Errorf("%s: the deadline is %v, want %v", c.name, got, c.want)
		}
	}
}

func TestAClockThatIsSlowByTheDriftShowsTheDeadlineBeforeTheLeaseEnds(t *testing.T) {
	t.Parallel()
	for _, left := range []time.Duration{1, 999, 1000, 1001, time.Second, 24 * time.Hour} {
		shown := left * (leadership.Drift - 1) / leadership.Drift // rounded down: what the slowest clock shows at the end
		if d := leadership.Deadline(0, 0, left, 0); d > shown {
			t.Errorf("a lease of %v is believed in until %v, when the slowest clock shows %v at its end", left, d, shown)
		}
	}
}
