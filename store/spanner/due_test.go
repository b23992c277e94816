package spanner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"google.golang.org/grpc"

	"regent/leadership"
	"regent/store/storetest"
)

// TestTickIsTwoQueriesThatFindWhatIsHeldAmongTenThousandPastElections counts the calls and the rows
// that they return. Which rows Cloud Spanner reads for them, only its indexes tell: the queries
// name them.
func TestTickIsTwoQueriesThatFindWhatIsHeldAmongTenThousandPastElections(t *testing.T) {
	t.Parallel()
	cfg := migrated(t)
	hand := client(t, cfg)
	rpcs := new(storetest.RPCs)
	cfg.DialOptions = []grpc.DialOption{grpc.WithStatsHandler(rpcs)}
	s := opened(t, cfg)
	granted(t, s, 3)
	rows := make([]*spanner.Mutation, 10_000)
	for i := range rows {
		row := map[string]any{
			"cluster_id": fmt.Sprintf("past-%05d", i), "schema_version": SchemaVersion, "fencing_token": 1, "revision": 2, "deleted": false, "needs": 1,
			"ended_at": time.Now().Add(-time.Hour), "locked_until": time.Now().Add(-time.Hour),
		}
		if i%2 == 0 { // to be retired one day
			row["policy"], row["retire_at"] = `{"retireAfterMs":7200000}`, time.Now().Add(time.Hour)
		}
		rows[i] = spanner.InsertMap("Leadership", row)
	}
	for some := range slices.Chunk(rows, 1000) {
		if _, err := hand.Apply(t.Context(), some); err != nil {
			t.Fatal(err)
		}
	}
	rpcs.Take()
	held, err := s.Held(t.Context(), "", leadership.MaxPageSize)
	if err != nil || len(held.Snapshots) != 3 || held.Next != "" {
		t.Errorf("held: got %+v, %v; want three", held, err)
	}
	due, err := s.Retirable(t.Context(), held.Snapshots[0].Now, leadership.MaxPageSize)
	if err != nil || len(due) != 0 {
		t.Errorf("to be retired: got %v, %v; want none", due, err)
	}
	if calls := rpcs.Take(); !slices.Equal(calls, []string{statement, statement}) {
		t.Errorf("called %v, want two queries", calls)
	}
	// Spanner takes an index without NULLs only for a query that says so; the emulator is told not
	// to check it.
	for query, c := range map[string]struct{ index, column string }{heldSQL: {"LeadershipHeld", "leader_id"}, retirableSQL: {"LeadershipRetirable", "retire_at"}} {
		if !strings.Contains(query, "FORCE_INDEX="+c.index+",") || !strings.Contains(query, "l."+c.column+" IS NOT NULL") {
			t.Errorf("the query does not name %s, or not that %s is not NULL: %s", c.index, c.column, query)
		}
	}
}
