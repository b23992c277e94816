package httpapi

import (
	"net/http"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

func (a *api) memberHandlers() handlers {
	return handlers{
		wire.VerbJoin:            a.join,
		wire.VerbLeave:           a.leave,
		wire.VerbMembers:         look(a, instance.Service.Members, wire.NewMembers),
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
	return ok(w, wire.Left{Election: request.Election}, a.service.Leave(r.Context(), request))
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
	return ok(w, acknowledgement, err)
}
