package instance

import (
	"context"

	"regent/leadership"
)

// Join makes the caller a member.
func (i *Instance) Join(ctx context.Context, r leadership.JoinRequest) (leadership.Reading, error) {
	return leadership.Reading{}, leadership.RefuseMember(r)
}

// Leave ends a membership.
func (i *Instance) Leave(context.Context, leadership.LeaveRequest) error { return nil }

// Members reads an election with its members.
func (i *Instance) Members(context.Context, leadership.Election) (leadership.Members, error) {
	return leadership.Members{}, leadership.StoreUnavailable
}

// AwaitAcknowledgement waits until enough members follow a token.
func (i *Instance) AwaitAcknowledgement(context.Context, leadership.AcknowledgementRequest) (leadership.Acknowledgement, error) {
	return leadership.Acknowledgement{}, leadership.StoreUnavailable
}
