package instance

import (
	"context"

	"regent/leadership"
	"regent/leadership/wire"
)

func (g *Guarded) Join(ctx context.Context, r leadership.JoinRequest) (leadership.Reading, error) {
	return guarded(ctx, g, wire.VerbJoin, Op{Election: r.Election, Candidate: r.CandidateID, N: 1}, g.service.Join, r)
}

func (g *Guarded) Leave(ctx context.Context, r leadership.LeaveRequest) error {
	op := Op{Election: r.Election, Candidate: r.CandidateID, N: 1}
	_, err := guarded(ctx, g, wire.VerbLeave, op, func(ctx context.Context, r leadership.LeaveRequest) (struct{}, error) {
		return struct{}{}, g.service.Leave(ctx, r)
	}, r)
	return err
}

func (g *Guarded) Members(ctx context.Context, e leadership.Election) (leadership.Members, error) {
	m, err := guarded(ctx, g, wire.VerbMembers, Op{Election: e, N: 1}, g.service.Members, e)
	g.answered(ctx, wire.VerbMembers, m.Seats+len(m.Members))
	return m, err
}

func (g *Guarded) AwaitAcknowledgement(ctx context.Context, r leadership.AcknowledgementRequest) (leadership.Acknowledgement, error) {
	op := Op{Election: r.Election, Waits: r.Wait > 0, N: 1}
	a, err := guarded(ctx, g, wire.VerbAcknowledgement, op, g.service.AwaitAcknowledgement, r)
	g.answered(ctx, wire.VerbAcknowledgement, len(a.Follow)+len(a.Missing))
	return a, err
}
