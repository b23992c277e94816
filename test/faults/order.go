package faults

import (
	"slices"
	"time"

	"regent/leadership"
	"regent/test/checker"
)

// inOrder is the recording with the times of reads in the order of what they show.
//
// A commit to a file has the time at which it was decided, and is seen some milliseconds later; what was read in between shows the election
// without it, at a later time. Spanner's emulator reads its clock after it has chosen what to show. Such a read gets the time of the first commit
// that it does not show, if that was no longer ago than a commit may be under way. The order in which calls were made and answered stays as strict
// as it was.
func inOrder(r checker.Recording) checker.Recording {
	commits := map[leadership.Election][]shown{}
	for _, e := range r.History {
		commits[e.Election] = append(commits[e.Election], shown{at: e.At, revision: e.Revision})
	}
	for _, c := range r.Calls {
		if a := c.Answer; a != nil && a.State == leadership.Held {
			commits[c.Election] = append(commits[c.Election], shown{at: a.LastHeartbeat, token: a.Token, beat: a.LastHeartbeat, since: a.Revision})
		}
	}
	for _, of := range commits {
		slices.SortFunc(of, func(a, b shown) int { return a.at.Compare(b.at) })
	}
	r.Calls = slices.Clone(r.Calls)
	for i, c := range r.Calls {
		if c.Answer == nil || isBeat(c) {
			continue
		}
		if s, ok := missed(*c.Answer, commits[c.Election]); ok {
			r.Calls[i].Answer = earlier(*c.Answer, s)
		}
	}
	return r
}

// underWay is how long a commit may be, on a machine that has other things to do.
const underWay = 2 * time.Second

// shown is what a commit lets a reader see.
type shown struct {
	at       time.Time
	revision leadership.Revision // 0 for a heartbeat without an event
	token    leadership.Token    // of a heartbeat
	beat     time.Time
	since    leadership.Revision // that it stood on
}

func isBeat(c checker.Call) bool {
	return c.Code == "" && c.Answer != nil && (c.Verb == checker.Acquire || c.Verb == checker.Renew)
}

// missed is the first commit that was made shortly before the read and is not in it.
func missed(l leadership.Lease, commits []shown) (shown, bool) {
	from, _ := slices.BinarySearchFunc(commits, l.ReadAt.Add(-underWay), func(s shown, t time.Time) int { return s.at.Compare(t) })
	for _, s := range commits[from:] {
		if s.at.After(l.ReadAt) {
			break
		}
		if s.revision > l.Revision || s.token == l.Token && s.token > 0 && s.beat.After(l.LastHeartbeat) && l.Revision <= s.since {
			return s, true
		}
	}
	return shown{}, false
}

// earlier is the same as it was read at the time of the commit; nil if it cannot be known: it shows a lease to be over that was renewed meanwhile.
func earlier(l leadership.Lease, s shown) *leadership.Lease {
	by := l.ReadAt.Sub(s.at)
	l.ReadAt = s.at
	switch {
	case l.State == leadership.Held:
		l.ExpiresIn = l.LeaseExpiration.Sub(s.at).Truncate(time.Millisecond)
	case s.revision == 0:
		return nil
	case l.LockedFor > 0:
		l.LockedFor += by
	}
	return &l
}
