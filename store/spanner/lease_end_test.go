package spanner

import (
	"testing"
	"time"

	"cloud.google.com/go/spanner"

	"regent/leadership/rule"
)

// TestSQLEndsALeaseWhenTheRulesDo compares leaseEnd with Record.LeaseEnd and StartOf.
func TestSQLEndsALeaseWhenTheRulesDo(t *testing.T) {
	t.Parallel()
	const lease = 90 * time.Second
	renewed := time.Date(2026, 3, 4, 5, 6, 7, 123456000, time.UTC)
	null := spanner.NullTime{}
	at := func(d time.Duration) spanner.NullTime { return spanner.NullTime{Time: renewed.Add(d), Valid: true} }
	hand := client(t, migrated(t))
	for name, c := range map[string]struct{ prior, endsBy spanner.NullTime }{
		"a grant":                                 {null, null},
		"renewed in time":                         {at(time.Microsecond), null},
		"renewed at the very end":                 {at(0), null},
		"renewed too late":                        {at(-time.Hour), null},
		"a grant that ends later than its lease":  {null, at(lease + 1)},
		"a grant that ends with its lease":        {null, at(lease)},
		"a grant that ends before its lease":      {null, at(lease - time.Microsecond)},
		"renewed in time, and limited":            {at(time.Second), at(2 * time.Second)},
		"renewed in time, and limited to that":    {at(time.Second), at(time.Second)},
		"renewed too late, and limited":           {at(-time.Hour), at(time.Second)},
		"renewed too late, as late as it may end": {at(-time.Hour), at(-time.Hour)},
		"renewed too late, and ended before":      {at(-time.Second), at(-time.Minute)},
	} {
		r := rule.Record{LeaderID: "ann", LeaseDuration: lease, HeartbeatAt: rule.StartOf(renewed, c.prior.Time, lease), EndsBy: c.endsBy.Time}
		want := r.LeaseEnd()
		var got time.Time
		statement := spanner.Statement{
			SQL:    "SELECT " + leaseEnd + " FROM (SELECT @renewed AS renewed_at, @prior AS prior_end, @ends AS ends_by, @ms AS lease_ms) AS l",
			Params: map[string]any{"renewed": renewed, "prior": c.prior, "ends": c.endsBy, "ms": lease.Milliseconds()},
		}
		err := hand.Single().Query(t.Context(), statement).Do(func(r *spanner.Row) error { return r.Columns(&got) })
		if err != nil || !got.Equal(want) {
			t.Errorf("%s: ends at %v, %v; want %v", name, got, err, want)
		}
	}
}
