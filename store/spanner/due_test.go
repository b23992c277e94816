package spanner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"google.golang.org/grpc"

	"regent/leadership"
	"regent/store/storetest"
)

// changeTables runs DDL statements by a foreign hand.
func changeTables(t *testing.T, cfg Config, ddl ...string) {
	t.Helper()
	admin, err := database.NewDatabaseAdminClient(t.Context(), cfg.options()...)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	op, err := admin.UpdateDatabaseDdl(t.Context(), &databasepb.UpdateDatabaseDdlRequest{Database: cfg.Database, Statements: ddl})
	if err == nil {
		err = op.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestTablesWithoutWhatTheTickNeedsServeAllButRetirements has tables as they were before.
func TestTablesWithoutWhatTheTickNeedsServeAllButRetirements(t *testing.T) {
	t.Parallel()
	cfg := migrated(t)
	changeTables(t, cfg, "DROP TABLE LeadershipLogSegments", "DROP TABLE LeadershipLogs",
		"DROP INDEX LeadershipHeld", "DROP INDEX LeadershipRetirable", "ALTER TABLE Leadership DROP COLUMN retire_at", "ALTER TABLE LeadershipSchema DROP COLUMN lowest")
	s := opened(t, cfg)
	leases := granted(t, s, 3)
	service := leadership.New(s)
	for range 2 {
		if a := s.Renew(t.Context(), leases[:1])[0]; a.Err != nil {
			t.Errorf("renew: %v", a.Err)
		}
	}
	if _, err := s.Update(t.Context(), "e000", leadership.Expect{}, func(s leadership.Snapshot) (leadership.Change, error) {
		return leadership.Release{LeaseRequest: leases[0].Request()}.Apply(s)
	}); err != nil {
		t.Errorf("release: %v", err)
	}
	held, err := s.Held(t.Context(), "", 10)
	if err != nil || len(held.Snapshots) != 2 {
		t.Errorf("held: got %+v, %v; want two", held, err)
	}
	if n, err := service.ExpireAll(t.Context()); n != 0 || err != nil {
		t.Errorf("expire all: %d, %v", n, err)
	}
	if n, err := service.RetireAll(t.Context()); n != 0 || err != nil {
		t.Errorf("retire all: %d, %v", n, err)
	}
	r := leadership.Configure{Election: "e000"}
	r.Config.LockDelay = time.Second
	if _, err := service.Do(t.Context(), r); err != nil {
		t.Errorf("configure: %v", err)
	}
	r.Config.RetireAfter = time.Hour
	for _, e := range []leadership.Election{"e000", "e001", "new"} { // vacant, held, never seen
		r.Election = e
		if _, err := service.Do(t.Context(), r); err == nil || !strings.Contains(err.Error(), "regent migrate") {
			t.Errorf("configure %s to retire: got %v, want an error that says what to do", e, err)
		}
	}
	if err := Migrate(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := service.Do(t.Context(), r); err != nil {
		t.Errorf("once the tables were migrated: %v", err)
	}
	hand := client(t, cfg)
	execute(t, hand, "UPDATE Leadership SET ended_at = TIMESTAMP_SUB(ended_at, INTERVAL 2 HOUR), locked_until = TIMESTAMP_SUB(locked_until, INTERVAL 2 HOUR), "+
		"retire_at = TIMESTAMP_SUB(retire_at, INTERVAL 2 HOUR) WHERE retire_at IS NOT NULL", nil)
	if n, err := service.RetireAll(t.Context()); n != 1 || err != nil {
		t.Errorf("retire all: %d, %v; want one", n, err)
	}
}

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
			row["policy"], row["needs"], row["retire_at"] = `{"retireAfterMs":7200000}`, 2, time.Now().Add(time.Hour)
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
	for query, index := range map[string]string{heldSQL: "LeadershipHeld", retirableSQL: "LeadershipRetirable"} {
		if !strings.Contains(query, "FORCE_INDEX="+index+",") {
			t.Errorf("the query does not name %s: %s", index, query)
		}
	}
}
