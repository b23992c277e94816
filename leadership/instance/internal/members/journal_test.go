package members_test

import (
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/members"
)

func TestSheetsSayHowFarMembersHaveAppliedTheJournal(t *testing.T) {
	w := newWorld(t)
	a, b := w.registry("a"), w.registry("b")
	w.join(b, "fay", leadership.RoleFollower, 1)
	if err := a.Applied(jobs, "gus", 3, w.now); err != nil {
		t.Fatal(err)
	}
	a.Appended(jobs, 10)
	var heard []members.Journal
	tell := func(sheets [][]byte) {
		t.Helper()
		for _, s := range sheets {
			h, err := b.Hear(s, w.now)
			if err != nil {
				t.Fatal(err)
			}
			heard = append(heard, h.Journals...)
		}
	}
	tell(a.ChangedSheets(nil, w.now))
	if len(heard) != 1 || heard[0] != (members.Journal{Election: jobs, Index: 10}) {
		t.Errorf("heard of %v", heard)
	}
	wants := func(applied, lag leadership.Index, when string) {
		t.Helper()
		for _, r := range []*members.Registry{a, b} {
			for _, m := range r.Members(leadership.Lease{Election: jobs}, 0, w.now) {
				if m.ID == "gus" && (m.Applied != applied || m.Lag != lag) || m.ID == "fay" && m.Applied+m.Lag != 0 {
					t.Errorf("%s: %s has applied %d, and lags by %d; want %d and %d of gus", when, m.ID, m.Applied, m.Lag, applied, lag)
				}
			}
			if i := r.JournalIndex(jobs); i != 10 {
				t.Errorf("%s: the journal is at %d, want 10", when, i)
			}
		}
	}
	wants(3, 7, "at first")
	if err := a.Applied(jobs, "gus", 9, w.now); err != nil {
		t.Fatal(err)
	}
	if err := a.Applied(jobs, "gus", 5, w.now); err != nil { // an older call that came late
		t.Fatal(err)
	}
	tell(a.ChangedSheets(nil, w.now))
	wants(9, 1, "later")
	if sheets := a.ChangedSheets(nil, w.now); len(sheets) != 0 {
		t.Errorf("nothing has changed, and this is told: %s", sheets)
	}
	if lag := a.Lag(); lag != 1 {
		t.Errorf("the members of a lag by %d, want 1", lag)
	}
	w.pass(31 * time.Second)
	if err := a.Applied(jobs, "gus", 1, w.now); err != nil {
		t.Fatal(err)
	}
	tell(a.WholeSheets(false, nil, w.now))
	wants(1, 9, "after it was gone for a while")
}
