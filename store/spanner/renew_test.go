package spanner

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"regent/leadership"
	"regent/leadership/rule"
)

func TestARecordThatCannotBeTrustedIsNotRenewedAndTheOthersAre(t *testing.T) {
	t.Parallel()
	for what, set := range map[string]string{
		"metadata is no object":     "metadata = JSON '[1]'",
		"lease of a year":           "lease_ms = 31536000000",
		"never acquired":            "acquired_at = NULL",
		"token below the history's": "fencing_token = 1, revision = 1",
		"revision of no event":      "revision = 9",
		"unknown schema version":    "schema_version = 999",
		"deleted":                   "deleted = TRUE",
		"an end":                    "ended_at = CURRENT_TIMESTAMP()",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cfg := migrated(t)
			s, foreign := opened(t, cfg), client(t, cfg)
			leases := granted(t, s, 3)
			before := column(t, foreign, "renewed_at")
			execute(t, foreign, "UPDATE Leadership SET "+set+" WHERE cluster_id = 'e001'", nil)
			if what == "token below the history's" {
				execute(t, foreign, "INSERT INTO LeadershipEvents (cluster_id, revision, type, fencing_token, shard, committed_at) VALUES ('e001', 2, 'acquired', 2, 0, PENDING_COMMIT_TIMESTAMP())", nil)
			}
			answers := s.Renew(t.Context(), leases)
			if answers[0].Err != nil || answers[2].Err != nil {
				t.Errorf("the others: %v, %v", answers[0].Err, answers[2].Err)
			}
			if err := answers[1].Err; !errors.Is(err, rule.ErrNotRenewed) && !errors.Is(err, leadership.RecordCorrupt) {
				t.Errorf("got %v, want %v or %s", err, rule.ErrNotRenewed, leadership.RecordCorrupt)
			}
			after := column(t, foreign, "renewed_at")
			if after["e001"] != before["e001"] || after["e000"] == before["e000"] || after["e002"] == before["e002"] {
				t.Errorf("heartbeats were at %v, are at %v", before, after)
			}
			_, err := s.Update(t.Context(), "e001", rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
				return rule.Renew(s, leases[1])
			})
			if !errors.Is(err, leadership.RecordCorrupt) {
				t.Errorf("a decision on it: %v, want %s", err, leadership.RecordCorrupt)
			}
		})
	}
}

// TestRenewSQLPassesOverRecordsOfNewerPrograms looks at the statement alone: what it returns is
// looked at once more before the Commit.
func TestRenewSQLPassesOverRecordsOfNewerPrograms(t *testing.T) {
	t.Parallel()
	cfg := migrated(t)
	s, foreign := opened(t, cfg), client(t, cfg)
	statement := s.renewal(granted(t, s, 1))
	for _, c := range []struct {
		set  string
		rows int
	}{
		{fmt.Sprint("needs = ", rule.ProgramVersion), 1},
		{fmt.Sprint("needs = ", rule.ProgramVersion+1), 0},
		{"schema_version = 999", 0},
	} {
		execute(t, foreign, "UPDATE Leadership SET "+c.set+" WHERE TRUE", nil)
		rows, undo := 0, errors.New("roll back")
		_, err := foreign.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			rows = 0
			if err := tx.Query(ctx, statement).Do(func(*spanner.Row) error { rows++; return nil }); err != nil {
				return err
			}
			return undo
		})
		if !errors.Is(err, undo) || rows != c.rows {
			t.Errorf("%s: %d rows are renewed, %v; want %d", c.set, rows, err, c.rows)
		}
	}
}

// column reads a timestamp of every record.
func column(t *testing.T, c *spanner.Client, name string) map[string]spanner.NullTime {
	t.Helper()
	all := make(map[string]spanner.NullTime)
	query := spanner.NewStatement("SELECT cluster_id, " + name + " FROM Leadership")
	err := c.Single().Query(t.Context(), query).Do(func(r *spanner.Row) error {
		var id string
		var at spanner.NullTime
		err := r.Columns(&id, &at)
		all[id] = at
		return err
	})
	require.NoError(t, err)
	return all
}

func TestALeaseIsRenewedOnlyIfEveryPartOfItMatches(t *testing.T) {
	t.Parallel()
	s := opened(t, migrated(t))
	right := granted(t, s, 1)[0]
	for what, spoil := range map[string]func(*rule.Renewal){
		"another candidate": func(r *rule.Renewal) { r.CandidateID = "bob" },
		"another key":       func(r *rule.Renewal) { r.KeyHash[31] ^= 1 },
		"no key":            func(r *rule.Renewal) { r.KeyHash = leadership.KeyHash{} },
		"an older token":    func(r *rule.Renewal) { r.Token = 0 },
		"a newer token":     func(r *rule.Renewal) { r.Token = 2 },
		"another election":  func(r *rule.Renewal) { r.Election = "e00" },
	} {
		wrong := right
		spoil(&wrong)
		if a := s.Renew(t.Context(), []rule.Renewal{wrong})[0]; !errors.Is(a.Err, rule.ErrNotRenewed) {
			t.Errorf("%s: %+v, want %v", what, a, rule.ErrNotRenewed)
		}
	}
	if a := s.Renew(t.Context(), []rule.Renewal{right})[0]; a.Err != nil {
		t.Error(a.Err)
	}
}

func TestALeaseThatIsReleasedBetweenTwoRunsOfARenewalIsNotRenewed(t *testing.T) {
	t.Parallel()
	n := new(network)
	s, whole := unreliable(t, n)
	leases := granted(t, whole, 2)
	n.then = func() {
		if _, err := whole.Update(t.Context(), "e000", rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
			return rule.Apply(s, leadership.Release{LeaseRequest: leases[0].Request()})
		}); err != nil {
			t.Error(err)
		}
	}
	n.plan(reply{answer: codes.Aborted})
	answers := s.Renew(t.Context(), leases)
	if a := answers[0]; !errors.Is(a.Err, rule.ErrNotRenewed) {
		t.Errorf("the one that was released: %+v, want %v", a, rule.ErrNotRenewed)
	}
	if a := answers[1]; a.Err != nil || a.Record.Election != "e001" || !a.Now.Before(a.Before) {
		t.Errorf("the other: %+v, want it renewed", a)
	}
}

func TestMetadataComesBackAsItWasWhateverSpannerMakesOfIt(t *testing.T) {
	t.Parallel()
	s := opened(t, migrated(t))
	for _, text := range []string{
		`{}`, `{"":""}`, `{"b":1,"a":{"d":[],"c":null}}`, `{"u":18446744073709551615,"i":-9223372036854775808,"j":9007199254740993}`,
		`{"f":0.1,"g":1e-300,"h":1.7976931348623157e308,"t":5e-324,"k":1e21,"l":123456789012345678901234567890,"m":-1.5}`,
		`{"html":"<a href='x'>&\u2028\u0001\t\"\\\u0000","emoji":"🗳️é","esc\"aped":true}`,
		`{"deep":[[[[[[[[[[[[[[{}]]]]]]]]]]]]]]}`,
	} {
		want, err := leadership.ParseMetadata([]byte(text))
		require.NoError(t, err)
		cmd := candidate("ann")
		cmd.Metadata = want
		if _, err := s.Update(t.Context(), "jobs", rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
			return rule.Acquire(s, cmd)
		}); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		read, err := s.Get(t.Context(), "jobs")
		renewed := s.Renew(t.Context(), []rule.Renewal{renewalOf("jobs", "ann", 1)})[0]
		if err != nil || renewed.Err != nil || read.Record.Metadata != want || renewed.Record.Metadata != want {
			t.Errorf("got %s, %v and %s, %v\nwant %s", read.Record.Metadata, err, renewed.Record.Metadata, renewed.Err, want)
		}
	}
}
