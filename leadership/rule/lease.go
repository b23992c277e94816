package rule

import (
	"regent/leadership"
)

// renewalsPerLease is how often a leader renews within one lease: two renewals may fail before it
// is lost.
const renewalsPerLease = 3

// Leaders returns the Lease for the answer to the leader's own heartbeat.
func (s *Snapshot) Leaders() leadership.Lease {
	l := s.Lease()
	l.Ticket = s.Ticket
	return l
}

// Lease returns s as callers may see it.
func (s *Snapshot) Lease() leadership.Lease {
	r := &s.Record
	l := leadership.Lease{
		Election:      r.Election,
		State:         leadership.Vacant,
		Token:         r.Token,
		Revision:      r.Revision,
		LeaseDuration: r.Policy.EffectiveLease(),
		ReadAt:        s.Now,
		CreatedAt:     r.created(),
		Config:        r.Policy.Config.Explicit(),
		Deleted:       r.Deleted,
		Lapsed:        r.LeaderID != "" && !s.Live(),
		DrawSecret:    string(r.Standing.Secret),
		LastLeader:    r.Standing.LastLeader,
	}
	if r.Standing.Seat > 0 {
		_, l.Seat, _ = r.Election.SeatOf()
		l.AssignedTo, l.AssignedUntil = r.Standing.Overrides.Assigned(s.Now)
	}
	if s.Live() {
		hold(&l, s)
		return l
	}
	l.Parked = s.ended().Record.Standing.Series.Parked
	l.LockedFor, _ = s.blocked()
	if l.VacantSince = r.EndedAt; l.Lapsed {
		l.VacantSince = r.LeaseEnd()
	}
	if r.Election == leadership.HaltsElection { // it has nothing but its halts
		l.Overrides = s.Orders()
	}
	return l
}

// NextDraw returns the draw that ranks the candidates for the next term.
func NextDraw(l leadership.Lease) Draw {
	return Draw{Election: l.Election, Token: l.Token + 1, Secret: l.DrawSecret, Last: l.LastLeader}
}

func hold(l *leadership.Lease, s *Snapshot) {
	r := &s.Record
	l.State, l.LeaderID, l.LeaseDuration, l.Metadata = leadership.Held, r.LeaderID, r.LeaseDuration, r.Metadata
	l.Note, l.Challenger = r.Standing.Note, r.Standing.Challenger
	l.Succession, l.NotServing, l.Parent = s.succession(), r.Standing.NotServing, r.Standing.Parent
	l.PreviousEnd = r.Standing.Ended.because(r.Token - 1)
	if l.Report = r.Standing.Report; l.Report != "" {
		l.ReportedAt = r.Standing.ReportedAt
		l.ReportAge = max(s.Now.Sub(l.ReportedAt), 0)
	}
	l.AcquiredAt, l.LastHeartbeat, l.LeaseExpiration = r.AcquiredAt, r.HeartbeatAt, r.LeaseEnd()
	l.ExpiresIn = l.LeaseExpiration.Sub(s.Now)
	// Near EndsBy that is a third of the remaining lease, so that the leader hears in time if
	// EndsBy moves on, but at least a third of the shortest lease.
	every := max(r.LeaseEnd().Sub(r.HeartbeatAt), leadership.MinLeaseDuration) / renewalsPerLease
	l.RenewIn = max(r.HeartbeatAt.Add(every).Sub(s.Now), 0)
	if !r.EndsBy.IsZero() {
		l.EndsBy, l.EndsBecause, l.EndsIn = r.EndsBy, r.EndsBecause, r.EndsBy.Sub(s.Now)
	}
}
