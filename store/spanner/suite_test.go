package spanner

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"regent/emulators"
	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/storetest"
)

func TestStore(t *testing.T) { storetest.RunStore(t, harness) }

func TestProtocol(t *testing.T) { storetest.RunProtocol(t, harness) }

func TestJournal(t *testing.T) { storetest.RunJournal(t, harness) }

// harness gives each case a database of its own: the emulator runs one read-write transaction at a
// time per database.
func harness(tb testing.TB) storetest.Backing {
	cfg := migrated(tb)
	foreign := client(tb, cfg)
	return storetest.Backing{
		Far:  true,
		Open: func(tb testing.TB) service.Store { return opened(tb, cfg) },
		OpenAs: func(tb testing.TB, c rule.Codec) service.Store {
			as := cfg
			as.Codec = c
			return opened(tb, as)
		},
		Advance: func(tb testing.TB, d time.Duration) {
			execute(tb, foreign, advanceSQL, map[string]any{"us": d.Microseconds()})
			execute(tb, foreign, advanceEventsSQL, map[string]any{"us": d.Microseconds()})
			advanceStandings(tb, foreign, d)
		},
		Compact: func(tb testing.TB) { execute(tb, foreign, compactSQL, nil) },
		Damage: func(tb testing.TB, e leadership.Election, d storetest.Damage) {
			if n := execute(tb, foreign, damageSQL(tb, d), map[string]any{"election": string(e)}); n != 1 {
				tb.Fatalf("damaged %d rows, want 1", n)
			}
		},
	}
}

// advanceSQL makes every record older, for Spanner's clock cannot be moved.
const advanceSQL = `UPDATE Leadership SET
	acquired_at = TIMESTAMP_SUB(acquired_at, INTERVAL @us MICROSECOND),
	renewed_at = TIMESTAMP_SUB(renewed_at, INTERVAL @us MICROSECOND),
	prior_end = TIMESTAMP_SUB(prior_end, INTERVAL @us MICROSECOND),
	ends_by = TIMESTAMP_SUB(ends_by, INTERVAL @us MICROSECOND),
	ended_at = TIMESTAMP_SUB(ended_at, INTERVAL @us MICROSECOND),
	locked_until = TIMESTAMP_SUB(locked_until, INTERVAL @us MICROSECOND),
	retire_at = TIMESTAMP_SUB(retire_at, INTERVAL @us MICROSECOND)
WHERE TRUE`

// advanceStandings makes what stands in each record older.
func advanceStandings(tb testing.TB, foreign *spanner.Client, d time.Duration) {
	tb.Helper()
	var older []*spanner.Mutation
	columns := []string{"cluster_id", "standing"}
	err := foreign.Single().Read(tb.Context(), "Leadership", spanner.AllKeys(), columns).Do(func(r *spanner.Row) error {
		var id string
		var standing spanner.NullString
		err := r.Columns(&id, &standing)
		if standing.Valid {
			older = append(older, spanner.Update("Leadership", columns, []any{id, storetest.Earlier(standing.StringVal, d)}))
		}
		return err
	})
	if err == nil && len(older) > 0 {
		_, err = foreign.Apply(tb.Context(), older)
	}
	require.NoError(tb, err)
}

// advanceEventsSQL lets all events be due earlier.
const advanceEventsSQL = `UPDATE LeadershipEvents SET delete_after = TIMESTAMP_SUB(delete_after, INTERVAL @us MICROSECOND) WHERE delete_after IS NOT NULL`

// compactSQL does what OLDER_THAN(delete_after, INTERVAL 0 DAY) does; of it a NULL is never true.
const compactSQL = `DELETE FROM LeadershipEvents WHERE TIMESTAMP_ADD(delete_after, INTERVAL 0 DAY) < CURRENT_TIMESTAMP()`

// damageSQL spoils a row by what comes nearest to the damage. Spanner itself prevents some: columns
// have types, a row with a history cannot be deleted, and a commit timestamp cannot lie in the
// future. Other tests see to it that it does.
func damageSQL(tb testing.TB, d storetest.Damage) string {
	set, ok := map[storetest.Damage]string{
		storetest.MissingField:  "lease_ms = NULL, locked_until = NULL, ended_at = CURRENT_TIMESTAMP()",
		storetest.WrongType:     "key_hash = b'short'",
		storetest.UnknownSchema: "schema_version = 999",
		storetest.TokenBehind:   "fencing_token = fencing_token - 1",
		storetest.RecordGone: `revision = 0, fencing_token = 0, leader_id = NULL, key_hash = NULL, lease_ms = NULL, metadata = NULL,
			acquired_at = NULL, renewed_at = NULL, prior_end = NULL, ended_at = NULL, locked_until = NULL`,
		storetest.LeaderNoLease: "leader_id = 'ghost', key_hash = NULL, lease_ms = NULL, acquired_at = NULL, renewed_at = NULL",
		storetest.FutureBeat:    "ended_at = TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL 1 HOUR), locked_until = TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL 1 HOUR)",
	}[d]
	if !ok {
		tb.Fatalf("no way to do this damage: %s", d)
	}
	return "UPDATE Leadership SET " + set + " WHERE cluster_id = @election"
}

// fresh names a database that is not there yet, on the emulator. It has an instance of its own too:
// an instance has at most 100 databases.
func fresh(tb testing.TB) Config {
	tb.Helper()
	host, unique := emulators.Spanner(tb), emulators.Name(tb)
	return Config{EmulatorHost: host, Database: "projects/regent-test/instances/" + unique + "/databases/test", CallTimeout: time.Minute, History: storetest.History}
}

// migrated names a database with tables.
func migrated(tb testing.TB) Config {
	tb.Helper()
	cfg := fresh(tb)
	require.NoError(tb, Migrate(tb.Context(), cfg))
	return cfg
}

func opened(tb testing.TB, cfg Config) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), cfg)
	require.NoError(tb, err)
	tb.Cleanup(func() { s.Close() })
	return s
}

// client is a foreign hand on the database.
func client(tb testing.TB, cfg Config) *spanner.Client {
	tb.Helper()
	c, err := cfg.dial(tb.Context())
	require.NoError(tb, err)
	tb.Cleanup(c.Close)
	return c
}

// execute runs one DML statement and returns how many rows it changed.
func execute(tb testing.TB, c *spanner.Client, sql string, params map[string]any) (n int64) {
	tb.Helper()
	n, err := try(tb.Context(), c, sql, params)
	if err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return n
}

func try(ctx context.Context, c *spanner.Client, sql string, params map[string]any) (n int64, err error) {
	_, err = c.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		n, err = tx.Update(ctx, spanner.Statement{SQL: sql, Params: params})
		return err
	})
	return n, err
}

// candidate is what a candidate of that name asks with.
func candidate(id string) rule.AcquireCommand {
	return rule.AcquireCommand{CandidateID: leadership.CandidateID(id), KeyHash: leadership.KeyHash{1, 2, 3}, LeaseDuration: time.Hour}
}

func acquire(id string) func(rule.Snapshot) (rule.Change, error) {
	return func(s rule.Snapshot) (rule.Change, error) { return rule.Acquire(s, candidate(id)) }
}

func renewalOf(e leadership.Election, id string, token leadership.Token) rule.Renewal {
	return rule.Renewal{Election: e, CandidateID: leadership.CandidateID(id), KeyHash: candidate(id).KeyHash, Token: token}
}

// granted acquires n elections and returns the renewals of their leases.
func granted(tb testing.TB, s *Store, n int) []rule.Renewal {
	tb.Helper()
	leases := make([]rule.Renewal, n)
	for i := range leases {
		e := leadership.Election(fmt.Sprintf("e%03d", i))
		if _, err := s.Update(tb.Context(), e, rule.Expect{}, acquire("ann")); err != nil {
			tb.Fatal(err)
		}
		leases[i] = renewalOf(e, "ann", 1)
	}
	return leases
}
