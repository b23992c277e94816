package line

import (
	"time"

	"regent/leadership"
)

// known is what an instance knows of an election in which somebody stands in line.
type known struct {
	revision leadership.Revision // of the newest that was learnt or heard
	lease    leadership.Lease
	read     bool          // the lease is the store's word at that revision, not what an event says of it
	at       time.Duration // when it was learnt
	open     time.Duration // when asking may help, unless the leader renews or releases before; not too early, as far as is known
}

// compare says whether the lease is newer (1) or older (-1) than what is known, or shows the same (0). At one revision a renewed lease ends
// later, and one that is over is not held again.
func (k *known) compare(lease leadership.Lease) int {
	switch {
	case lease.Revision < k.revision:
		return -1
	case lease.Revision > k.revision || !k.read:
		return 1
	case lease.State == k.lease.State:
		return lease.LeaseExpiration.Compare(k.lease.LeaseExpiration)
	case lease.State == leadership.Held:
		return -1
	}
	return 1
}

// learn takes the store's word, and says whether it is news. Of two answers that show the same end, the one that took less time on its way
// is nearer to the truth.
func (k *known) learn(lease leadership.Lease, open, now time.Duration) (news bool) {
	order := k.compare(lease)
	if order < 0 || order == 0 && open >= k.open {
		return false
	}
	*k = known{revision: lease.Revision, lease: lease, read: true, at: now, open: open}
	return true
}

// hear takes an event that is newer than what is known. It says whether what is known of the lease still holds.
func (k *known) hear(e leadership.Event, now time.Duration) (same bool) {
	k.revision, k.read = e.Revision, false
	if k.lease.Election == e.Election && k.lease.LeaderID == e.LeaderID && k.lease.Token == e.Token {
		k.lease.Revision = e.Revision
		return true
	}
	k.at, k.open = now, now
	k.lease = leadership.Lease{
		Election:      e.Election,
		State:         leadership.Vacant,
		LeaderID:      e.LeaderID,
		Token:         e.Token,
		Revision:      e.Revision,
		LeaseDuration: k.lease.LeaseDuration,
		ReadAt:        e.At,
		Config:        k.lease.Config,
		Deleted:       e.Type == leadership.EventDeleted,
	}
	if e.LeaderID != "" {
		k.lease.State = leadership.Held
	}
	return false
}

// leads says whether the candidate leads, as far as is known. Once its lease may be over, it is a candidate like the others.
func (k *known) leads(c leadership.CandidateID, now time.Duration) bool {
	return k.lease.State == leadership.Held && k.lease.LeaderID == c && now < k.open
}

// opens is when asking may help those who do not have the lease, if it was learnt just now. That an election is deleted they are told at once.
func (c *Common) opens(lease leadership.Lease, now time.Duration) time.Duration {
	switch {
	case lease.Deleted:
		return now
	case lease.State == leadership.Held:
		return now + lease.ExpiresIn + c.guard + lease.Config.LockDelay
	}
	return now + lease.LockedFor
}
