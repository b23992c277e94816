package spanner

import (
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"github.com/google/go-cmp/cmp"

	"regent/leadership"
)

// schemaBeforeSQL is schema.sql as it was in the version before.
func schemaBeforeSQL() []string {
	var before []string
	for _, s := range statements(schemaSQL) {
		if strings.HasPrefix(s, "ALTER") || slices.ContainsFunc(
			[]string{"LeadershipHeld", "LeadershipRetirable", "LeadershipLog"}, func(later string) bool { return strings.Contains(s, later) }) {
			continue
		}
		for _, line := range []string{
			"needs            INT64", "ends_by          TIMESTAMP", "ends_because     STRING(64)",
			"policy           STRING(MAX)", "standing         STRING(MAX)",
			"actor              STRING(MAX)", "reason             STRING(256)", "detail             STRING(MAX)",
		} {
			s = strings.ReplaceAll(s, "  "+line+",\n", "")
		}
		s = strings.NewReplacer("default_lease_ms INT64,", "default_lease_ms INT64 NOT NULL,", "lock_delay_ms    INT64,", "lock_delay_ms    INT64 NOT NULL,").Replace(s)
		before = append(before, s)
	}
	return before
}

// TestDatabaseOfTheVersionBeforeIsMigratedReadAndRewritten has tables and rows as the version
// before made them.
func TestDatabaseOfTheVersionBeforeIsMigratedReadAndRewritten(t *testing.T) {
	t.Parallel()
	cfg := fresh(t)
	n, _ := cfg.name()
	admin, err := database.NewDatabaseAdminClient(t.Context(), cfg.options()...)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if err := createDatabase(t.Context(), cfg, n, admin); err != nil {
		t.Fatal(err)
	}
	op, err := admin.UpdateDatabaseDdl(t.Context(), &databasepb.UpdateDatabaseDdlRequest{Database: cfg.Database, Statements: schemaBeforeSQL()})
	if err == nil {
		err = op.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	hand := client(t, cfg)
	key := leadership.KeyHash{1, 2, 3}
	wrote, err := hand.Apply(t.Context(), []*spanner.Mutation{
		spanner.InsertMap("LeadershipSchema", map[string]any{"version": 1}),
		spanner.InsertMap("Leadership", map[string]any{
			"cluster_id": "jobs", "schema_version": 1, "fencing_token": 1, "revision": 1, "deleted": false,
			"default_lease_ms": 60_000, "lock_delay_ms": 5000, "leader_id": "ann", "key_hash": key[:], "lease_ms": 3_600_000,
			"acquired_at": time.Now().UTC(), "renewed_at": spanner.CommitTimestamp,
		}),
		spanner.InsertMap("LeadershipEvents", map[string]any{
			"cluster_id": "jobs", "revision": 1, "type": "acquired", "fencing_token": 1, "leader_id": "ann", "request_id": "r",
			"committed_at": spanner.CommitTimestamp, "shard": shard("jobs"), "pending": true,
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	refusedToOpen(t, cfg, "regent migrate")
	for range 2 { // the second time changes nothing
		if err := Migrate(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	s := opened(t, cfg)
	want := leadership.Record{
		Election: "jobs", Token: 1, Revision: 1, Needs: 1, LeaderID: "ann", KeyHash: key, LeaseDuration: time.Hour,
		AcquiredAt: wrote.UTC(), HeartbeatAt: wrote.UTC(),
		Policy: leadership.Policy{Config: leadership.Config{LeaseDuration: time.Minute, LockDelay: 5 * time.Second}},
	}
	got, err := s.Get(t.Context(), "jobs")
	if diff := cmp.Diff(want, got.Record); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	events, err := s.Events(t.Context(), "jobs", 0, 10)
	if err != nil || len(events) != 1 || events[0].RequestID != "r" {
		t.Errorf("got events %+v, %v", events, err)
	}
	renewal := renewalOf("jobs", "ann", 1)
	renewed := s.Renew(t.Context(), []leadership.Renewal{renewal})[0]
	if want.HeartbeatAt = renewed.Snapshot.Now; renewed.Err != nil || renewed.Snapshot.Record != want {
		t.Errorf("renewed: got %+v, want %+v", renewed, want)
	}
	released, err := s.Update(t.Context(), "jobs", leadership.Expect{}, func(s leadership.Snapshot) (leadership.Change, error) {
		return leadership.Release{LeaseRequest: renewal.Request()}.Apply(s)
	})
	if err != nil || released.Record.Policy != want.Policy {
		t.Fatalf("got %+v, %v", released, err)
	}
	rewritten := "SELECT 1 FROM Leadership WHERE schema_version = 2 AND default_lease_ms IS NULL AND lock_delay_ms IS NULL AND policy IS NOT NULL AND needs = 1"
	rows := 0
	if err := hand.Single().Query(t.Context(), spanner.NewStatement(rewritten)).Do(func(*spanner.Row) error { rows++; return nil }); err != nil || rows != 1 {
		t.Errorf("after a change %d rows have the new form, %v", rows, err)
	}
	if got, err := s.Get(t.Context(), "jobs"); err != nil || got.Record != released.Record {
		t.Errorf("got %+v, %v; want %+v", got.Record, err, released.Record)
	}
}

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
		r := leadership.Record{LeaderID: "ann", LeaseDuration: lease, HeartbeatAt: leadership.StartOf(renewed, c.prior.Time, lease), EndsBy: c.endsBy.Time}
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
