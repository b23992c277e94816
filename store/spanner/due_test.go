package spanner

import (
	"strings"
	"testing"
)

// Which rows Cloud Spanner reads for a tick, only its indexes tell. It takes an index without NULLs
// only for a query that says so; the emulator is told not to check it.
func TestTheQueriesOfATickNameTheIndexOfWhatIsHeldOrDue(t *testing.T) {
	t.Parallel()
	for query, c := range map[string]struct{ index, column string }{heldSQL: {"LeadershipHeld", "leader_id"}, retirableSQL: {"LeadershipRetirable", "retire_at"}} {
		if !strings.Contains(query, "FORCE_INDEX="+c.index+",") || !strings.Contains(query, "l."+c.column+" IS NOT NULL") {
			t.Errorf("the query does not name %s, or not that %s is not NULL: %s", c.index, c.column, query)
		}
	}
}
