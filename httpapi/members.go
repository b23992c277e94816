package httpapi

import (
	"net/http"

	"regent/leadership"
	"regent/leadership/wire"
)

func (a *api) join(w http.ResponseWriter, r *http.Request) error {
	request, err := request(w, r, open, wire.JoinRequest.Leadership)
	if err != nil {
		return err
	}
	reading, err := a.service.Join(r.Context(), request)
	return answerReading(w, r, reading, err)
}

func (a *api) leave(w http.ResponseWriter, r *http.Request) error {
	var body wire.LeaveRequest
	if err := call(w, r, wire.MaxBody, &body); err != nil {
		return err
	}
	request := leadership.LeaveRequest{Election: election(r), CandidateID: body.CandidateID}
	if err := request.Validate(); err != nil {
		return err
	}
	return ok(w, wire.Left{Election: request.Election}, a.service.Leave(r.Context(), request))
}

func (a *api) awaitAcknowledgement(w http.ResponseWriter, r *http.Request) error {
	request, err := request(w, r, named, wire.AcknowledgementRequest.Leadership)
	if err != nil {
		return err
	}
	ctx, cancel := a.patience(w, r, request.Wait)
	defer cancel()
	acknowledgement, err := a.service.AwaitAcknowledgement(ctx, request)
	return ok(w, acknowledgement, err)
}
