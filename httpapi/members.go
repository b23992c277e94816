package httpapi

import (
	"net/http"

	"regent/leadership"
	"regent/leadership/wire"
)

func (a *api) memberHandlers() handlers {
	return handlers{
		wire.VerbJoin:            a.join,
		wire.VerbLeave:           a.leave,
		wire.VerbMembers:         a.members,
		wire.VerbAcknowledgement: a.awaitAcknowledgement,
	}
}

func (a *api) join(w http.ResponseWriter, r *http.Request) error {
	var body wire.JoinRequest
	if err := call(w, r, &body); err != nil {
		return err
	}
	e, err := open(r)
	if err != nil {
		return err
	}
	request, err := body.Leadership(e)
	if err != nil {
		return err
	}
	reading, err := a.service.Join(r.Context(), request)
	return answerReading(w, r, reading, err)
}

func (a *api) leave(w http.ResponseWriter, r *http.Request) error {
	var body wire.LeaveRequest
	if err := call(w, r, &body); err != nil {
		return err
	}
	request := leadership.LeaveRequest{Election: election(r), CandidateID: body.CandidateID}
	if err := request.Validate(); err != nil {
		return err
	}
	if err := a.service.Leave(r.Context(), request); err != nil {
		return err
	}
	return ok(w, wire.Left{Election: request.Election})
}

func (a *api) members(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	members, err := a.service.Members(r.Context(), election(r))
	if err != nil {
		return err
	}
	return ok(w, wire.NewMembers(members))
}

func (a *api) awaitAcknowledgement(w http.ResponseWriter, r *http.Request) error {
	var body wire.AcknowledgementRequest
	if err := call(w, r, &body); err != nil {
		return err
	}
	request, err := body.Leadership(election(r))
	if err != nil {
		return err
	}
	ctx, cancel := a.patience(w, r, request.Wait)
	defer cancel()
	acknowledgement, err := a.service.AwaitAcknowledgement(ctx, request)
	if err != nil {
		return err
	}
	return ok(w, wire.NewAcknowledgement(acknowledgement))
}
