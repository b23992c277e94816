package members_test

import (
	"fmt"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/members"
)

// BenchmarkSecond is what a second costs with ten thousand members at this instance and as many at
// another one, if nothing changes.
func BenchmarkSecond(b *testing.B) {
	a, other := members.New("a", 0), members.New("b", 0)
	for n := range leadership.MaxMembers {
		for _, r := range []*members.Registry{a, other} {
			j := leadership.JoinRequest{Election: jobs, CandidateID: leadership.CandidateID(fmt.Sprintf("n%d", n)), Role: leadership.RoleWorker, TTL: leadership.MaxMemberTTL}
			if err := r.Join(j, 0); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, s := range other.WholeSheets(false, nil, 0) {
		if _, err := a.Hear(s, 0); err != nil {
			b.Fatal(err)
		}
	}
	a.ChangedSheets(nil, 0)
	b.ReportAllocs()
	for b.Loop() {
		a.Tick(time.Second)
		a.ChangedSheets(nil, time.Second)
	}
}

// BenchmarkWhole is what the whole sheet of ten thousand members costs where it is made, and where
// it is heard.
func BenchmarkWhole(b *testing.B) {
	a, other := members.New("a", 0), members.New("b", 0)
	for n := range leadership.MaxMembers {
		j := leadership.JoinRequest{Election: jobs, CandidateID: leadership.CandidateID(fmt.Sprintf("n%d", n)), Role: leadership.RoleWorker, TTL: leadership.MaxMemberTTL}
		if err := a.Join(j, 0); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		size := 0
		for _, s := range a.WholeSheets(false, nil, 0) {
			size += len(s)
			if _, err := other.Hear(s, 0); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(size), "sheetbytes")
	}
}
