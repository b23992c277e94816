package wire

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"regent/leadership"
)

// FuzzAppend holds the answers that write themselves to what encoding/json makes of them.
func FuzzAppend(f *testing.F) {
	f.Add("reports", "ann", "held", int64(7), int64(30_000), int64(30e9), int64(1_700_000_000_123_456_789), "key", true)
	f.Add("", "", "", int64(0), int64(0), int64(0), int64(0), "", false)
	f.Add("a\"b", "\x01<é>\u2028\xff", "vacant", int64(-1), int64(-5), int64(1500e6), int64(1e18), "\\", true)
	f.Fuzz(func(t *testing.T, election, leader, state string, n, ms, d, at int64, key string, flag bool) {
		l := Lease{
			Election: leadership.Election(election), State: leadership.State(state), LeaderID: leadership.CandidateID(leader),
			FencingToken: leadership.Token(n), Revision: leadership.Revision(n + 1), LeaseDuration: Duration(d), LockedForMs: ms,
			Configuration: Configuration{Duration(d / 2), Duration(d / 3)}, Deleted: flag, MaxStalenessMs: ms / 2,
		}
		if flag {
			l.ExpiresInMs, l.RenewInMs = &ms, &n
			l.AcquiredAt, l.LastHeartbeat = time.Unix(0, at).UTC(), time.Unix(at%4e9, 0).UTC()
			l.LeaseExpiration, l.ReadAt = l.AcquiredAt.Add(time.Millisecond), l.AcquiredAt.Truncate(time.Second)
			l.Metadata, _ = json.Marshal(map[string]string{leader: state})
		}
		same(t, l)
		same(t, Grant{Lease: l, Key: key, WaitedMs: ms})
		problem := NewProblem(&leadership.Error{Code: leadership.LeaseHeld, Detail: leader})
		same(t, Results{})
		same(t, Results{[]Result{}})
		same(t, Results{[]Result{{Election: l.Election, Lease: &l}, {Lease: &l}, {}, {Election: l.Election, Error: &problem}, {Election: l.Election}}})
	})
}

// same compares what the value writes with what encoding/json does. The metadata of a server are canonical: no spaces are in them.
func same(t *testing.T, v interface{ Append([]byte) []byte }) {
	t.Helper()
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return // a year that JSON cannot have
	}
	if got := string(v.Append([]byte("before"))) + "\n"; got != "before"+want.String() {
		t.Errorf("got  %s\nwant %s", got, want.String())
	}
}
