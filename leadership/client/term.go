package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"regent/leadership"
)

// StepDown is Resign with a reason, which the election's history keeps: one line of 1 to
// leadership.MaxReasonBytes bytes. If absence is not zero, from 1 s to 30 days, the candidate is
// not granted the lease again for that long. Everything that acts as leader must have stopped
// before.
//
// An invalid reason or time is InvalidArgument, and the lease goes on. If the server refuses the
// reason, the lease is released without one, and the error says so.
func (l *Lease) StepDown(ctx context.Context, reason string, absence time.Duration) error {
	switch {
	case reason == "" || len(reason) > leadership.MaxReasonBytes:
		return invalid("reason", "a reason is one line of 1 to %d bytes, not of %d", leadership.MaxReasonBytes, len(reason))
	case absence != 0 && (absence < leadership.MinOrder || absence > leadership.MaxOrder || absence%time.Millisecond != 0):
		return invalid("for", "a candidate steps down for 0s, or for %v to %v in whole milliseconds, not for %v", leadership.MinOrder, leadership.MaxOrder, absence)
	}
	return l.resign(ctx, func(ctx context.Context, r leadership.LeaseRequest) error {
		err := l.client.release(ctx, r, func(r leadership.LeaseRequest) leadership.Command {
			return leadership.StepDown{LeaseRequest: r, Reason: reason, For: absence}
		})
		if err == nil || errors.Is(err, leadership.LeaseLost) || transient(err) || ctx.Err() != nil {
			return err
		}
		if failed := l.client.release(ctx, r, released); failed != nil {
			return errors.Join(err, failed)
		}
		return fmt.Errorf("the lease is released, but without the reason: %w", err)
	})
}

// Finish is Resign with the outcome of the work, which counts if the election's policy limits many
// terms together: see leadership.SeriesPolicy. The note, one line of at most
// leadership.MaxReasonBytes bytes, is for people; it may be empty.
//
// An invalid outcome or note is InvalidArgument, and the lease goes on. If the server refuses the
// outcome, the lease is released without it.
func (l *Lease) Finish(ctx context.Context, outcome leadership.Outcome, note string) error {
	command := leadership.Release{LeaseRequest: l.named(), Outcome: outcome, Note: note}
	if err := command.Validate(); err != nil {
		return err
	}
	return l.resign(ctx, func(ctx context.Context, r leadership.LeaseRequest) error {
		return l.giveUpBy(ctx, r, func(r leadership.LeaseRequest) leadership.Command {
			command.LeaseRequest = r
			return command
		})
	})
}

// outcomeOf returns the outcome of a leader's function that returned err.
func (l *Lease) outcomeOf(ctx context.Context, err error) leadership.Outcome {
	switch {
	case ctx.Err() != nil, l.ctx.Err() != nil, errors.Is(err, ErrNotFollowed): // it was cut short, or did not begin
		return leadership.OutcomeStopped
	case err == nil:
		return leadership.OutcomeDone
	}
	return leadership.OutcomeFailed
}

// RequestApproval tells operators that the leader needs an approval to go on, with a note of one
// line for them. Asking again before they have answered changes nothing. InvalidArgument: the
// election's policy needs no approval. See EndsBy and NoticeApprovalDue.
func (l *Lease) RequestApproval(ctx context.Context, note string) error {
	_, err := l.client.Do(ctx, leadership.RequestApproval{LeaseRequest: l.named(), Note: note})
	return err
}

// RequestEpoch is RequestApproval for an approval with a new epoch, as for a new task: the lease
// then goes on under the next token. See NoticeNewEpoch.
func (l *Lease) RequestEpoch(ctx context.Context, note string) error {
	_, err := l.client.Do(ctx, leadership.RequestApproval{LeaseRequest: l.named(), Note: note, NewEpoch: true})
	return err
}

// named returns the names, key and token of the lease, as calls send them.
func (l *Lease) named() leadership.LeaseRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.request
}

// epochOf returns the new token if the answer to a renewal says that an operator has begun a new
// epoch. The server has compared the key, so the lease is still the caller's.
func epochOf(err error, r leadership.LeaseRequest) (token leadership.Token, ok bool) {
	e, ok := errors.AsType[*leadership.Error](err)
	if !ok || e.Code != leadership.LeaseLost || e.Reason != leadership.ReasonEpoch || e.Lease == nil {
		return 0, false
	}
	now := expected{election: r.Election, held: true, leader: r.CandidateID}
	return e.Lease.Token, now.match(*e.Lease) == nil && e.Lease.Token > r.Token
}

// lostBecause returns the cause of the end of a lease that the server says is lost.
func lostBecause(err error) error {
	if e, ok := errors.AsType[*leadership.Error](err); ok && e.Reason == leadership.ReasonDeposed {
		return fmt.Errorf("%w: %w", ErrDeposed, err)
	}
	return err
}
