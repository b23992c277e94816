package line

import (
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/backoff"
	"regent/leadership/instance/internal/view"
)

// maxOrphaned is how long a line of an election whose parent has no leader waits at most until it
// asks again, if it hears nothing of the parent.
const maxOrphaned = 30 * time.Second

// parent is the election that this one is a part of, while it is known to have no leader. None of
// the candidates can be granted then.
type parent struct {
	name     leadership.Election // "" if that is not known
	refusals int                 // in a row
	election *view.Election      // what is known of it; nil if the line does not listen to it
}

func (p parent) version() int {
	if p.election == nil {
		return 0
	}
	return p.election.Version()
}

// orphaned takes a refusal because the parent has no leader, and returns for how long the store is
// not asked again: longer each time.
func (l *Line) orphaned(refusal *leadership.Error) time.Duration {
	pause := backoff.After(l.parent.refusals, refusal.RetryAfter, maxOrphaned)
	l.parent.name = refusal.Lease.Config.Delegation.Parent
	l.parent.refusals++
	return pause
}

// Parent is the election whose news the line waits for; "" for none. The driver lets the line
// listen to it by Attend.
func (l *Line) Parent() leadership.Election { return l.parent.name }

// Attend gives the line what is known of its parent from now on; nil for nothing any more.
func (l *Line) Attend(p *view.Election) {
	l.parent.election = p
	l.seen.parent = l.parent.version()
}

// adopt lets the head ask, because the parent has news. If it has no leader, the line waits on.
func (l *Line) adopt(now time.Duration) {
	b := l.bars.all
	if b == nil || b.refusal.Cause.Code != leadership.ReasonParent || l.parent.election == nil || l.parent.election.Leader() == "" {
		return
	}
	l.bars.all, l.top.known = nil, false
	l.next = max(l.open(now), now) + l.common.jitter(eventSpread)
}
