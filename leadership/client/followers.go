package client

import (
	"context"
	"errors"
	"fmt"

	"regent/leadership"
)

// ErrNotFollowed says that too few members followed the new token within the duration of the lease,
// so Run gave the lease back without calling its function.
var ErrNotFollowed = errors.New("too few members follow the new token")

// AwaitFollowers blocks until at least need members, 1 to leadership.MaxMembers, follow the token
// of the lease; the leader itself does not count. The lease is renewed meanwhile. Members follow a
// token once they have said so: see Client.Member. Call it after the grant, before the leader does
// anything that conflicts with a follower of the former leader, or before a hand-over or shutdown.
//
// It returns nil once need members follow; the cause if the lease or ctx ended before; and errors
// that another call would not change, such as leadership.InvalidArgument or wire.PermissionDenied.
// It has no limit of its own: give ctx one.
func (l *Lease) AwaitFollowers(ctx context.Context, need int) error {
	if err := (leadership.AcknowledgementRequest{Election: l.Election(), Token: l.Token(), Need: need}).Validate(); err != nil {
		return err
	}
	ctx, cancel := l.during(ctx)
	defer cancel()
	for p := (backoff{}); ; {
		began := l.client.clock()
		request := leadership.AcknowledgementRequest{Election: l.Election(), Token: l.Token(), Need: need, Wait: l.client.boundWait(leadership.MaxWait)}
		a, err := l.client.AwaitAcknowledgement(ctx, request)
		switch {
		case !l.Valid():
			cause, _ := l.ending()
			return cause
		case err == nil && a.Done:
			return nil
		case ctx.Err() != nil:
			return about(l.named(), context.Cause(ctx))
		// an instance that has not heard of the token yet may call it stale; a renewal tells
		case err != nil && !transient(err) && !errors.Is(err, leadership.TokenStale):
			return about(l.named(), err)
		case err == nil && l.client.clock()-began >= request.Wait/2:
			p = backoff{}
			continue
		}
		sleep(ctx, p.after(err))
	}
}

// awaitFollowers is AwaitFollowers for Candidate.AwaitFollowers members, for at most one duration
// of the lease.
func (l *Lease) awaitFollowers(ctx context.Context) error {
	need := l.client.candidate.AwaitFollowers
	if need == 0 {
		return nil
	}
	late := fmt.Errorf("%w: not %d within %v", ErrNotFollowed, need, l.duration)
	ctx, cancel := context.WithTimeoutCause(ctx, l.duration, late)
	defer cancel()
	l.client.logOf(l).Info("waiting for members to follow the token", "members", need)
	return l.AwaitFollowers(ctx, need)
}
