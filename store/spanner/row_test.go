package spanner

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"

	"regent/leadership"
	"regent/leadership/rule"
)

var instant = time.Date(2026, 2, 28, 23, 59, 59, 123456000, time.UTC)

func heldRecord() rule.Record {
	return rule.Record{
		Election: "jobs", Token: 7, Revision: 12, Needs: 1,
		Policy:   rule.Policy{Config: leadership.Config{LeaseDuration: time.Minute, LockDelay: time.Second}, Unknown: `{"x":1.0}`},
		Standing: rule.Standing{Unknown: `{"y":"<é>"}`},
		EndsBy:   instant.Add(time.Hour), EndsBecause: leadership.EndsStuck,
		LeaderID: "ann", KeyHash: leadership.KeyHash{1, 2, 3}, LeaseDuration: 1500 * time.Millisecond,
		AcquiredAt: instant, HeartbeatAt: instant, Metadata: `{"a":18446744073709551615,"b":["<é>"]}`,
	}
}

// rowOf is the row that keeps the record, as Spanner would return it.
func rowOf(r rule.Record) row {
	carried, err := rule.Codec{}.Encode(&r)
	if err != nil {
		panic(err)
	}
	c := columns(rule.Change{Record: r}, carried)
	kept := row{
		ClusterID:     nullText(c["cluster_id"].(string)),
		SchemaVersion: some(c["schema_version"].(int64)),
		FencingToken:  some(c["fencing_token"].(int64)),
		Revision:      some(c["revision"].(int64)),
		Deleted:       spanner.NullBool{Bool: c["deleted"].(bool), Valid: true},
		Needs:         some(c["needs"].(int64)),
		Policy:        c["policy"].(spanner.NullString),
		Standing:      c["standing"].(spanner.NullString),
		EndsBy:        c["ends_by"].(spanner.NullTime),
		EndsBecause:   c["ends_because"].(spanner.NullString),
		LeaderID:      c["leader_id"].(spanner.NullString),
		KeyHash:       c["key_hash"].([]byte),
		LeaseMS:       c["lease_ms"].(spanner.NullInt64),
		Metadata:      nullText("null"),
		AcquiredAt:    c["acquired_at"].(spanner.NullTime),
		EndedAt:       c["ended_at"].(spanner.NullTime),
		LockedUntil:   c["locked_until"].(spanner.NullTime),
		RenewedAt:     spanner.NullTime{Time: r.HeartbeatAt, Valid: r.LeaderID != ""},
	}
	if r.LeaderID != "" && !r.HeartbeatAt.Equal(r.AcquiredAt) { // the lease was renewed
		kept.PriorEnd = spanner.NullTime{Time: r.HeartbeatAt.Add(time.Microsecond), Valid: true}
	}
	if j := c["metadata"].(spanner.NullJSON); j.Valid {
		kept.Metadata = nullText(string(j.Value.(json.RawMessage)))
	}
	return kept
}

func some(i int64) spanner.NullInt64 { return spanner.NullInt64{Int64: i, Valid: true} }

func TestARowThatIsNotRegentsIsRefused(t *testing.T) {
	t.Parallel()
	vacant := func(r *row) {
		r.LeaderID, r.KeyHash, r.LeaseMS, r.Metadata = spanner.NullString{}, nil, spanner.NullInt64{}, spanner.NullString{}
		r.AcquiredAt, r.RenewedAt = spanner.NullTime{}, spanner.NullTime{}
		r.EndsBy, r.EndsBecause = spanner.NullTime{}, spanner.NullString{}
	}
	for what, c := range map[string]struct {
		spoil func(*row)
		says  string
	}{
		"no schema version":        {func(r *row) { r.SchemaVersion.Valid = false }, "schema_version is <null>"},
		"unknown schema version":   {func(r *row) { r.SchemaVersion.Int64 = 2; r.FencingToken.Valid = false }, "schema_version is 2"},
		"no token":                 {func(r *row) { r.FencingToken.Valid = false }, "fencing_token is NULL"},
		"no revision":              {func(r *row) { r.Revision.Valid = false }, "revision is NULL"},
		"revision 0":               {func(r *row) { r.Revision.Int64 = 0 }, "revision is 0"},
		"not known if deleted":     {func(r *row) { r.Deleted.Valid = false }, "deleted is NULL"},
		"no needs":                 {func(r *row) { r.Needs.Valid = false }, "needs is NULL"},
		"needs nothing":            {func(r *row) { r.Needs.Int64 = 0 }, "needs version 0"},
		"policy is no object":      {func(r *row) { r.Policy.StringVal = "[1]" }, "policy"},
		"standing is no JSON":      {func(r *row) { r.Standing.StringVal = "{" }, "standing"},
		"no leader and a limit":    {func(r *row) { e := r.EndsBy; vacant(r); r.EndsBy = e }, "a part of a lease"},
		"lease beyond all numbers": {func(r *row) { r.LeaseMS.Int64 = 1 << 62 }, "lease_ms is 4611686018427387904"},
		"empty leader":             {func(r *row) { r.LeaderID.StringVal = "" }, "leader_id is empty"},
		"no key":                   {func(r *row) { r.KeyHash = nil }, "key_hash has 0 bytes"},
		"short key":                {func(r *row) { r.KeyHash = r.KeyHash[:31] }, "key_hash has 31 bytes"},
		"no lease":                 {func(r *row) { r.LeaseMS.Valid = false }, "lease_ms is NULL"},
		"never acquired":           {func(r *row) { r.AcquiredAt.Valid = false }, "acquired_at is NULL"},
		"no heartbeat":             {func(r *row) { r.RenewedAt.Valid = false }, "renewed_at is NULL"},
		"metadata is no object":    {func(r *row) { r.Metadata.StringVal = "[1]" }, "metadata"},
		"a leader and an end":      {func(r *row) { r.EndedAt = r.RenewedAt }, "ended_at or locked_until is not NULL"},
		"no leader and a key":      {func(r *row) { k := r.KeyHash; vacant(r); r.KeyHash = k }, "a part of a lease"},
		"no leader and a lease":    {func(r *row) { l := r.LeaseMS; vacant(r); r.LeaseMS = l }, "a part of a lease"},
		"no leader and metadata":   {func(r *row) { m := r.Metadata; vacant(r); r.Metadata = m }, "a part of a lease"},
		"no leader and heartbeat":  {func(r *row) { h := r.RenewedAt; vacant(r); r.RenewedAt = h }, "a part of a lease"},
		"no leader and a start":    {func(r *row) { h := r.AcquiredAt; vacant(r); r.AcquiredAt = h }, "a part of a lease"},
		"no leader and a due time": {func(r *row) { r.PriorEnd = r.RenewedAt; vacant(r) }, "a part of a lease"},
		"due in the year 1":        {func(r *row) { r.PriorEnd.Valid = true }, "prior_end is"},
		"an end and no lock":       {func(r *row) { r.EndedAt = r.RenewedAt; vacant(r) }, "locked_until is NULL"},
		"a lock and no end":        {func(r *row) { r.LockedUntil = r.RenewedAt; vacant(r) }, "ended_at is NULL"},
		"a lock before its end":    {func(r *row) { r.EndedAt, r.LockedUntil = r.EndsBy, r.AcquiredAt; vacant(r) }, "before ended_at"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := rowOf(heldRecord())
			c.spoil(&r)
			got, err := r.record(rule.Codec{})
			if !errors.Is(err, leadership.RecordCorrupt) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), `"jobs"`) {
				t.Errorf("got %v, want %s of election \"jobs\" with %q", err, leadership.RecordCorrupt, c.says)
			}
			if got != (rule.Record{}) {
				t.Errorf("and a record: %+v", got)
			}
		})
	}
}

func TestAnEventRowThatIsNotRegentsIsRefused(t *testing.T) {
	t.Parallel()
	whole := eventRow{
		ClusterID: nullText("jobs"), Revision: some(3), Type: nullText("acquired"), FencingToken: some(1),
		LeaderID: nullText("ann"), CommittedAt: spanner.NullTime{Time: instant, Valid: true},
		Actor: nullText("a"), Reason: nullText("b"), Detail: nullText(`{"c":1}`),
	}
	want := leadership.Event{Actor: "a", Reason: "b", Detail: `{"c":1}`, Election: "jobs", Revision: 3, Type: leadership.EventAcquired, At: instant, LeaderID: "ann", Token: 1}
	if got, err := whole.event(); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for what, spoil := range map[string]func(*eventRow){
		"no revision":    func(r *eventRow) { r.Revision.Valid = false },
		"revision 0":     func(r *eventRow) { r.Revision.Int64 = 0 },
		"no type":        func(r *eventRow) { r.Type = spanner.NullString{} },
		"no token":       func(r *eventRow) { r.FencingToken.Valid = false },
		"negative token": func(r *eventRow) { r.FencingToken.Int64 = -1 },
		"token too high": func(r *eventRow) { r.FencingToken.Int64 = 1 << 53 },
		"no time":        func(r *eventRow) { r.CommittedAt.Valid = false },
	} {
		r := whole
		spoil(&r)
		if ev, err := r.event(); !errors.Is(err, leadership.RecordCorrupt) {
			t.Errorf("%s: got %+v, %v; want %s", what, ev, err, leadership.RecordCorrupt)
		}
	}
}
