package faults_test

import (
	"testing"
	"time"

	"regent/leadership"
	"regent/test/checker"
	"regent/test/faults"
)

func TestAReadThatMissesACommitUnderWayGetsItsTime(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	held := func(beat, read time.Duration) *leadership.Lease {
		end := begin.Add(beat + 10*time.Second)
		return &leadership.Lease{
			Election: "e", State: leadership.Held, LeaderID: "ann", Token: 1, Revision: 1, LeaseDuration: 10 * time.Second,
			LastHeartbeat: begin.Add(beat), LeaseExpiration: end, ReadAt: begin.Add(read), ExpiresIn: end.Sub(begin.Add(read)),
		}
	}
	released := leadership.Event{Election: "e", Revision: 2, Type: leadership.EventReleased, At: begin.Add(5 * time.Second), Token: 1}
	renewal := checker.Call{Verb: checker.Renew, Election: "e", Token: 1, Answer: held(4*time.Second, 4*time.Second)}
	for name, c := range map[string]struct{ beat, read, want time.Duration }{
		"before all commits":               {0, 3 * time.Second, 3 * time.Second},
		"while a renewal was under way":    {0, 4100 * time.Millisecond, 4 * time.Second},
		"after the renewal":                {4 * time.Second, 4100 * time.Millisecond, 4100 * time.Millisecond},
		"while a release was under way":    {4 * time.Second, 5200 * time.Millisecond, 5 * time.Second},
		"far too late to miss the release": {4 * time.Second, 9 * time.Second, 9 * time.Second},
	} {
		get := checker.Call{Verb: checker.Get, Election: "e", Answer: held(c.beat, c.read)}
		r := faults.InOrder(checker.Recording{History: []leadership.Event{released}, Calls: []checker.Call{renewal, get}})
		a := r.Calls[1].Answer
		if got := a.ReadAt.Sub(begin); got != c.want || a.LeaseExpiration.Sub(a.ReadAt) != a.ExpiresIn {
			t.Errorf("%s: a read at %v is put at %v with %v left, want %v", name, c.read, got, a.ExpiresIn, c.want)
		}
		if get.Answer.ReadAt != begin.Add(c.read) {
			t.Errorf("%s: the recording itself is changed", name)
		}
	}
}
