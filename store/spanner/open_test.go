package spanner

import (
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"github.com/stretchr/testify/require"
)

func TestTwoMayMigrateAtOnce(t *testing.T) {
	t.Parallel()
	cfg := fresh(t)
	errs := make(chan error, 2)
	for range 2 {
		go func() { errs <- Migrate(t.Context(), cfg) }()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	opened(t, cfg)
}

func TestAnInterruptedMigrationIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	cfg := migrated(t)
	c := client(t, cfg)
	execute(t, c, "DELETE FROM LeadershipSchema WHERE TRUE", nil) // the version is written last
	refusedToOpen(t, cfg, "regent admin migrate --store spanner:"+cfg.Database)
	require.NoError(t, Migrate(t.Context(), cfg))
	opened(t, cfg)
}

func TestADatabaseWithoutTablesIsNotOpenedAndNotChanged(t *testing.T) {
	t.Parallel()
	cfg := fresh(t)
	n, err := cfg.name()
	require.NoError(t, err)
	admin, err := database.NewDatabaseAdminClient(t.Context(), cfg.options()...)
	require.NoError(t, err)
	defer admin.Close()
	require.NoError(t, createDatabase(t.Context(), cfg, n, admin))
	refusedToOpen(t, cfg, "regent admin migrate --store spanner:"+cfg.Database)
	ddl, err := admin.GetDatabaseDdl(t.Context(), &databasepb.GetDatabaseDdlRequest{Database: cfg.Database})
	if err != nil || len(ddl.GetStatements()) != 0 {
		t.Errorf("opening has created %q, %v", ddl.GetStatements(), err)
	}
}

func TestADatabaseThatIsNotThereIsNotOpened(t *testing.T) {
	t.Parallel()
	noInstance, noDatabase := fresh(t), migrated(t)
	noDatabase.Database += "x"
	for _, cfg := range []Config{noInstance, noDatabase} {
		refusedToOpen(t, cfg, "does not exist")
		refusedToOpen(t, cfg, "regent admin migrate --store spanner:"+cfg.Database)
	}
}

func TestLaterTablesAreUsedByTheProgramsThatTheyAllow(t *testing.T) {
	t.Parallel()
	cfg := migrated(t)
	foreign := client(t, cfg)
	for lowest, allowed := range map[string]bool{"0": true, "1": true, "2": false, "3": false} {
		execute(t, foreign, "UPDATE LeadershipSchema SET version = 3, lowest = "+lowest+" WHERE TRUE", nil)
		if !allowed {
			refusedToOpen(t, cfg, "has schema version 3, and this program knows version 1: use the version of regent that made it, or a newer one")
			if err := Migrate(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "has schema version 3") {
				t.Errorf("lowest is %s, migrate: %v; want that the version is unknown", lowest, err)
			}
			continue
		}
		if err := Migrate(t.Context(), cfg); err != nil {
			t.Errorf("lowest is %s: %v", lowest, err)
		}
		opened(t, cfg)
		if v, err := readVersions(t.Context(), foreign); err != nil || v.Version != 3 {
			t.Errorf("lowest is %s: after migrate the version is %d, %v; want 3, as it was", lowest, v.Version, err)
		}
	}
}

// A migration of a later version may come between the two steps of this one.
func TestAMigrationThatALaterOneHasOvertakenLeavesItsVersion(t *testing.T) {
	t.Parallel()
	cfg := migrated(t)
	foreign := client(t, cfg)
	execute(t, foreign, "UPDATE LeadershipSchema SET version = 3, lowest = 1 WHERE TRUE", nil)
	admin, err := database.NewDatabaseAdminClient(t.Context(), cfg.options()...)
	require.NoError(t, err)
	defer admin.Close()
	if err := createTables(t.Context(), cfg.Database, admin, foreign); err != nil {
		t.Error(err)
	}
	if v, err := readVersions(t.Context(), foreign); err != nil || v.Version != 3 {
		t.Errorf("the version is %d, %v; want 3, as it was", v.Version, err)
	}
}

func refusedToOpen(t *testing.T, cfg Config, says string) {
	t.Helper()
	s, err := Open(t.Context(), cfg)
	if err == nil || s != nil || !strings.Contains(err.Error(), says) {
		t.Errorf("open %q: %v, %v; want nil and an error with %q", cfg.Database, s, err, says)
	}
}

// The store does not check what Spanner itself prevents; this checks that Spanner does.
func TestSpannerItselfKeepsARecordFromBeingLostOrDatedAhead(t *testing.T) {
	t.Parallel()
	cfg := migrated(t)
	granted(t, opened(t, cfg), 1)
	c := client(t, cfg)
	for what, sql := range map[string]string{
		"a record with a history is not deleted":       "DELETE FROM Leadership WHERE cluster_id = 'e000'",
		"a heartbeat does not lie in the future":       "UPDATE Leadership SET renewed_at = TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL 1 HOUR) WHERE cluster_id = 'e000'",
		"a token is not missing":                       "UPDATE Leadership SET fencing_token = NULL WHERE cluster_id = 'e000'",
		"no event of an election without a record":     "UPDATE LeadershipEvents SET cluster_id = 'gone' WHERE TRUE",
		"the schema has one version":                   "INSERT INTO LeadershipSchema (version, lowest) VALUES (1, 1)",
		"the hash of a key has 32 bytes and no longer": "UPDATE Leadership SET key_hash = CONCAT(key_hash, b'x') WHERE TRUE",
	} {
		if n, err := try(t.Context(), c, sql, nil); err == nil {
			t.Errorf("%s: %d rows changed, want an error", what, n)
		} else if code := spanner.ErrCode(err); code.String() == "Unavailable" {
			t.Errorf("%s: %v", what, err)
		}
	}
}
