package spanner

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/store/storetest"
)

// deadlines reads when each event of an election may be deleted, and when it was committed, in
// order.
func deadlines(t *testing.T, c *spanner.Client, e leadership.Election) (due []spanner.NullTime, committed []time.Time) {
	t.Helper()
	err := c.Single().Query(t.Context(), spanner.Statement{
		SQL:    "SELECT delete_after, committed_at FROM LeadershipEvents WHERE cluster_id = @e ORDER BY revision",
		Params: map[string]any{"e": string(e)},
	}).Do(func(r *spanner.Row) error {
		due, committed = append(due, spanner.NullTime{}), append(committed, time.Time{})
		return r.Columns(&due[len(due)-1], &committed[len(committed)-1])
	})
	require.NoError(t, err)
	return due, committed
}

func TestOnlyTheNewestEventOfAnElectionIsNeverDue(t *testing.T) {
	t.Parallel()
	cfg := migrated(t)
	s, foreign := opened(t, cfg), client(t, cfg)
	granted(t, s, 2)
	update := func(decide func(rule.Snapshot) (rule.Change, error)) {
		t.Helper()
		if _, err := s.Update(t.Context(), "e000", rule.Expect{}, decide); err != nil {
			t.Fatal(err)
		}
	}
	update(lockDelay(time.Millisecond, 0))
	update(acquire("ann")) // a heartbeat, and no event
	execute(t, foreign, advanceSQL, map[string]any{"us": (2 * time.Hour).Microseconds()})
	update(acquire("bob")) // two events
	due, committed := deadlines(t, foreign, "e000")
	if len(due) != 4 {
		t.Fatalf("there are %d events, want 4", len(due))
	}
	for i, superseded := range []time.Time{committed[1], committed[2], committed[3]} {
		if at := superseded.Add(storetest.History); !due[i].Valid || due[i].Time.Before(at) || due[i].Time.After(at.Add(10*time.Minute)) {
			t.Errorf("event %d may be deleted after %v, and was the newest until %v; want %v later, and not much more", i+1, due[i], superseded, storetest.History)
		}
	}
	if due[3].Valid {
		t.Errorf("the newest event may be deleted after %v", due[3])
	}
	if due, _ := deadlines(t, foreign, "e001"); len(due) != 1 || due[0].Valid {
		t.Errorf("the only event of another election may be deleted after %v", due)
	}
}

func TestTheDatabaseHasADeletionPolicyForEvents(t *testing.T) {
	t.Parallel()
	cfg := migrated(t)
	admin, err := database.NewDatabaseAdminClient(t.Context(), cfg.options()...)
	require.NoError(t, err)
	defer admin.Close()
	ddl, err := admin.GetDatabaseDdl(t.Context(), &databasepb.GetDatabaseDdlRequest{Database: cfg.Database})
	require.NoError(t, err)
	with := slices.DeleteFunc(ddl.Statements, func(s string) bool { return !strings.Contains(s, "ROW DELETION POLICY") })
	if len(with) != 1 || !strings.HasPrefix(with[0], "CREATE TABLE LeadershipEvents (") || !strings.Contains(with[0], "OLDER_THAN(delete_after, INTERVAL 0 DAY)") {
		t.Errorf("tables with a policy: %v; want LeadershipEvents, by delete_after", with)
	}
}

func TestWhatHappenedLatelyIsFoundInEveryShard(t *testing.T) {
	t.Parallel()
	cfg := migrated(t)
	s, foreign := opened(t, cfg), client(t, cfg)
	granted(t, s, 80)
	used := make(map[int64]bool)
	for i := range 80 {
		used[shard(leadership.Election(fmt.Sprintf("e%03d", i)))] = true
	}
	if len(used) != shards {
		t.Fatalf("the elections are in %d shards of %d", len(used), shards)
	}
	recent, err := s.Since(t.Context(), time.Now().Add(-time.Hour), 80)
	if err != nil || len(recent.Events) != 80 {
		t.Errorf("got %d events, %v; want 80", len(recent.Events), err)
	}
	if _, err := s.Since(t.Context(), time.Now().Add(-time.Hour), 79); !errors.Is(err, leadership.HistoryCompacted) {
		t.Errorf("at most 79: got %v, want %s", err, leadership.HistoryCompacted)
	}
	execute(t, foreign, "UPDATE LeadershipEvents SET type = '' WHERE cluster_id = 'e040'", nil)
	if recent, err := s.Since(t.Context(), time.Now().Add(-time.Hour), 80); !errors.Is(err, leadership.RecordCorrupt) {
		t.Errorf("with one that cannot be read: got %v, %v; want %s", recent.Events, err, leadership.RecordCorrupt)
	}
}
