package client

import (
	"context"

	"regent/leadership"
)

// ReadOnly reports whether the election has lost its quorum for longer than the grace time of its
// policy. The leader then keeps the lease but must not write. It hears of this only if
// Config.OnNotice is set, within about a second; see NoticeReadOnly.
func (l *Lease) ReadOnly() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.readOnly
}

// heed starts or stops the watch of the election: it is needed while the policy, as of the grant or
// the last renewal, asks for a quorum, or if Candidate.HearProposals is set. Only the renewing
// goroutine calls it.
func (k *keeper) heed(c leadership.Config) {
	quorum := c.Ballot.Quorum.Electorate != ""
	switch watched := quorum || k.client.candidate.HearProposals; {
	case watched && k.unheed == nil && k.client.onNotice != nil:
		ctx, cancel := context.WithCancel(k.ctx)
		k.unheed = cancel
		go k.watchElection(ctx)
	case !watched && k.unheed != nil:
		k.unheed()
		k.unheed = nil
	}
	if !quorum {
		k.setReadOnly(k.ctx, false)
	}
}

// watchElection hears of proposals and whether the leader may write, at the beginning of each
// connection and whenever that changes. While there is no connection, the last state counts.
func (l *Lease) watchElection(ctx context.Context) {
	for news, err := range l.client.Watch(ctx, WatchRequest{Election: l.Election(), Members: true}) {
		switch m := news.Member; {
		case err != nil && ctx.Err() == nil:
			l.client.logOf(l).Debug("the leader does not hear whether its election is read-only, nor of proposals", "reason", err)
		case m == nil || m.ID != l.CandidateID():
		case m.Change == leadership.MemberReadOnly, m.Change == leadership.MemberWritable:
			l.setReadOnly(ctx, m.Change == leadership.MemberReadOnly)
		case m.Change == leadership.MemberAsked && l.client.candidate.HearProposals:
			l.post(Notice{Kind: NoticeAsked})
		}
	}
}

// setReadOnly sets whether the leader must not write, and posts a notice if that has changed. It
// does nothing once ctx has ended.
func (l *Lease) setReadOnly(ctx context.Context, now bool) {
	l.mu.Lock()
	news := ctx.Err() == nil && l.readOnly != now
	if news {
		l.readOnly = now
	}
	l.mu.Unlock()
	switch log := l.client.logOf(l); {
	case news && now:
		log.Warn("the election is read-only: too few members of its electorate are present")
		l.post(Notice{Kind: NoticeReadOnly})
	case news:
		log.Info("the election is not read-only any more")
		l.post(Notice{Kind: NoticeWritable})
	}
}
