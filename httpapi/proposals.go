package httpapi

import (
	"net/http"

	"regent/leadership/instance"
	"regent/leadership/wire"
)

func (a *api) proposalHandlers() handlers {
	return handlers{
		wire.VerbPropose: a.propose,
		wire.VerbDecide: write(a, largest{wire.MaxBody, "say more elsewhere, and note where"},
			wire.DecideRequest.Leadership, instance.Service.Decide, same),
		wire.VerbProposals: look(a, instance.Service.Proposals, same),
	}
}

func (a *api) propose(w http.ResponseWriter, r *http.Request) error {
	var body wire.ProposeRequest
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
	ctx, cancel := a.patience(w, r, request.Wait)
	defer cancel()
	proposal, err := a.service.Propose(ctx, request)
	if err != nil {
		return err
	}
	return ok(w, proposal)
}
