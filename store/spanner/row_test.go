package spanner

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"

	"regent/leadership"
)

var instant = time.Date(2026, 2, 28, 23, 59, 59, 123456000, time.UTC)

func heldRecord() leadership.Record {
	return leadership.Record{
		Election: "jobs", Token: 7, Revision: 12, Needs: 1,
		Policy:   leadership.Policy{Config: leadership.Config{LeaseDuration: time.Minute, LockDelay: time.Second}, Unknown: `{"x":1.0}`},
		Standing: leadership.Standing{Unknown: `{"y":"<é>"}`},
		EndsBy:   instant.Add(time.Hour), EndsBecause: leadership.EndsStuck,
		LeaderID: "ann", KeyHash: leadership.KeyHash{1, 2, 3}, LeaseDuration: 1500 * time.Millisecond,
		AcquiredAt: instant, HeartbeatAt: instant, Metadata: `{"a":18446744073709551615,"b":["<é>"]}`,
	}
}

// rowOf is the row that keeps the record, as Spanner would return it.
func rowOf(r leadership.Record) row {
	carried, err := leadership.Codec{}.Encode(&r)
	if err != nil {
		panic(err)
	}
	c := columns(leadership.Change{Record: r}, carried)
	kept := row{
		ClusterID:      nullText(c["cluster_id"].(string)),
		SchemaVersion:  some(c["schema_version"].(int64)),
		FencingToken:   some(c["fencing_token"].(int64)),
		Revision:       some(c["revision"].(int64)),
		Deleted:        spanner.NullBool{Bool: c["deleted"].(bool), Valid: true},
		Needs:          some(c["needs"].(int64)),
		DefaultLeaseMS: c["default_lease_ms"].(spanner.NullInt64),
		LockDelayMS:    c["lock_delay_ms"].(spanner.NullInt64),
		Policy:         c["policy"].(spanner.NullString),
		Standing:       c["standing"].(spanner.NullString),
		EndsBy:         c["ends_by"].(spanner.NullTime),
		EndsBecause:    c["ends_because"].(spanner.NullString),
		LeaderID:       c["leader_id"].(spanner.NullString),
		KeyHash:        c["key_hash"].([]byte),
		LeaseMS:        c["lease_ms"].(spanner.NullInt64),
		Metadata:       nullText("null"),
		AcquiredAt:     c["acquired_at"].(spanner.NullTime),
		EndedAt:        c["ended_at"].(spanner.NullTime),
		LockedUntil:    c["locked_until"].(spanner.NullTime),
		RenewedAt:      spanner.NullTime{Time: r.HeartbeatAt, Valid: r.LeaderID != ""},
	}
	if r.LeaderID != "" && !r.HeartbeatAt.Equal(r.AcquiredAt) { // the lease was renewed
		kept.PriorEnd = spanner.NullTime{Time: r.HeartbeatAt.Add(time.Microsecond), Valid: true}
	}
	if j := c["metadata"].(spanner.NullJSON); j.Valid {
		kept.Metadata = nullText(string(j.Value.(json.RawMessage)))
	}
	return kept
}

// rowBefore is the row of the schema version before that keeps heldRecord, as far as that can be.
func rowBefore() row {
	r := rowOf(heldRecord())
	r.SchemaVersion, r.DefaultLeaseMS, r.LockDelayMS = some(schemaBefore), some(60_000), some(1000)
	r.Needs, r.Policy, r.Standing = spanner.NullInt64{}, spanner.NullString{}, spanner.NullString{}
	r.EndsBy, r.EndsBecause = spanner.NullTime{}, spanner.NullString{}
	return r
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
		"unknown schema version":   {func(r *row) { r.SchemaVersion.Int64 = 3; r.FencingToken.Valid = false }, "schema_version is 3"},
		"no token":                 {func(r *row) { r.FencingToken.Valid = false }, "fencing_token is NULL"},
		"no revision":              {func(r *row) { r.Revision.Valid = false }, "revision is NULL"},
		"revision 0":               {func(r *row) { r.Revision.Int64 = 0 }, "revision is 0"},
		"not known if deleted":     {func(r *row) { r.Deleted.Valid = false }, "deleted is NULL"},
		"no needs":                 {func(r *row) { r.Needs.Valid = false }, "needs is NULL"},
		"needs nothing":            {func(r *row) { r.Needs.Int64 = 0 }, "needs version 0"},
		"policy is no object":      {func(r *row) { r.Policy.StringVal = "[1]" }, "policy"},
		"standing is no JSON":      {func(r *row) { r.Standing.StringVal = "{" }, "standing"},
		"a delay as before":        {func(r *row) { r.LockDelayMS = some(1) }, "lock_delay_ms is not NULL"},
		"before: no default":       {func(r *row) { *r = rowBefore(); r.DefaultLeaseMS.Valid = false }, "default_lease_ms is NULL"},
		"before: negative delay":   {func(r *row) { *r = rowBefore(); r.LockDelayMS.Int64 = -1 }, "lock_delay_ms is -1"},
		"before: a policy":         {func(r *row) { *r = rowBefore(); r.Policy = nullText("{}") }, "schema_version 2"},
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
			got, err := r.record(leadership.Codec{})
			if !errors.Is(err, leadership.RecordCorrupt) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), `"jobs"`) {
				t.Errorf("got %v, want %s of election \"jobs\" with %q", err, leadership.RecordCorrupt, c.says)
			}
			if got != (leadership.Record{}) {
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

// FuzzRow holds that no row makes the decoder panic, that what it refuses is RECORD_CORRUPT, and
// that what it takes is kept by the row that it would write.
func FuzzRow(f *testing.F) {
	hash := strings.Repeat("k", 32)
	f.Add(uint32(0b1111_1110_0111_1111), int64(1), int64(7), int64(12), false, int64(60000), int64(1000), "ann", hash, int64(1500), `{"a":1}`, int64(0), int64(1), int64(0), int64(0), int64(0), int64(1), int64(9), `{"lockDelayMs":1}`, "stuck")
	f.Add(uint32(0b1110_0110_1111_1111), int64(1), int64(7), int64(12), false, int64(60000), int64(1000), "ann", hash, int64(1500), `{"a":1}`, int64(0), int64(1), int64(0), int64(0), int64(0), int64(1), int64(9), `{"lockDelayMs":1}`, "stuck")
	f.Add(uint32(0b0001_1000_0111_1111), int64(1), int64(7), int64(12), true, int64(0), int64(0), "", "", int64(0), "null", int64(0), int64(0), int64(0), int64(5), int64(9), int64(1), int64(9), `{"lockDelayMs":1}`, "stuck")
	f.Add(uint32(0xffff), int64(2), int64(-1), int64(0), true, int64(-1), int64(1<<62), "", "short", int64(-5), `[]`, int64(-1<<60), int64(1<<60), int64(0), int64(1), int64(0), int64(1), int64(9), `{"lockDelayMs":1}`, "stuck")
	f.Add(uint32(0b1111_1110_1111_0111_1100_1111), int64(2), int64(7), int64(12), false, int64(0), int64(0), "ann", hash, int64(1500), `{"a":1}`, int64(0), int64(1), int64(0), int64(0), int64(0), int64(1), int64(9), `{"lockDelayMs":1,"b":{}}`, "stuck")
	f.Add(uint32(0), int64(0), int64(0), int64(0), false, int64(0), int64(0), "", "", int64(0), "", int64(0), int64(0), int64(0), int64(0), int64(0), int64(1), int64(9), `{"lockDelayMs":1}`, "stuck")
	f.Add(uint32(0b1111_1110_0111_1111), int64(1), int64(1<<53), int64(1), false, int64(86400000), int64(86400000), "ann", hash, int64(86400000), `{"n":1e400}`, int64(0), int64(0), int64(0), int64(0), int64(0), int64(1), int64(9), `{"lockDelayMs":1}`, "stuck")
	f.Fuzz(func(t *testing.T, valid uint32, schema, token, revision int64, deleted bool, lease, delay int64, leader, key string, ms int64, metadata string, acquired, renewed, prior, ended, until, needs, ends int64, policy, because string) {
		has := func(bit int) bool { return valid&(1<<bit) != 0 }
		at := func(bit int, micros int64) spanner.NullTime {
			return spanner.NullTime{Time: time.UnixMicro(micros), Valid: has(bit)}
		}
		r := row{
			ClusterID:      nullText("jobs"),
			SchemaVersion:  spanner.NullInt64{Int64: schema, Valid: has(0)},
			FencingToken:   spanner.NullInt64{Int64: token, Valid: has(1)},
			Revision:       spanner.NullInt64{Int64: revision, Valid: has(2)},
			Deleted:        spanner.NullBool{Bool: deleted, Valid: has(3)},
			DefaultLeaseMS: spanner.NullInt64{Int64: lease, Valid: has(4)},
			LockDelayMS:    spanner.NullInt64{Int64: delay, Valid: has(5)},
			Metadata:       spanner.NullString{StringVal: metadata, Valid: has(6)},
			LeaderID:       spanner.NullString{StringVal: leader, Valid: has(9)},
			Needs:          spanner.NullInt64{Int64: needs, Valid: has(16)},
			Policy:         spanner.NullString{StringVal: policy, Valid: has(17)},
			EndsBy:         at(18, ends),
			EndsBecause:    spanner.NullString{StringVal: because, Valid: has(19)},
			LeaseMS:        spanner.NullInt64{Int64: ms, Valid: has(10)},
			AcquiredAt:     at(13, acquired), RenewedAt: at(14, renewed), PriorEnd: at(7, prior), EndedAt: at(11, ended), LockedUntil: at(12, until),
		}
		if has(15) {
			r.KeyHash = []byte(key)
		}
		rec, err := r.record(leadership.Codec{})
		if err != nil {
			if !errors.Is(err, leadership.RecordCorrupt) && !errors.Is(err, leadership.RecordTooNew) || rec != (leadership.Record{}) {
				t.Fatalf("got %+v, %v", rec, err)
			}
			return
		}
		again, err := rowOf(rec).record(leadership.Codec{})
		if err != nil || again != rec {
			t.Errorf("taken as %+v, kept as %+v, %v", rec, again, err)
		}
	})
}
