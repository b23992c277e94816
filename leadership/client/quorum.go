package client

import (
	"context"

	"regent/leadership"
)

// ReadOnly reports whether the election has lost its quorum for longer than the grace time of its
// policy, as far as the leader has heard: it must not write then, and goes on to lead. It hears of
// it only with a Config.OnNotice, within about a second; see NoticeReadOnly.
func (l *Lease) ReadOnly() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.readOnly
}

// heed sees to it that the leader hears whether it may write while the policy, of the grant or of
// the last renewal, asks for a quorum, and of proposals if it wants to. Otherwise it makes no call.
// Only the renewing goroutine calls it.
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

// watchElection hears whether the leader may write, at the beginning of each connection and
// whenever that changes, and of proposals. While there is no connection, what was heard last
// counts.
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

// setReadOnly posts a notice if it is news whether the leader must not write. It does nothing once
// ctx has ended.
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
