package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"regent/leadership"
	"regent/leadership/wire"
)

func (a *api) orderHandlers() handlers {
	all := handlers{
		wire.VerbOverrides:       a.overrides,
		wire.VerbJudge:           a.judge,
		wire.VerbStepDown:        a.stepDown,
		wire.VerbRequestApproval: a.requestApproval,
		wire.VerbExplain:         a.explain,
	}
	for _, kind := range leadership.Orders() {
		all[wire.Verb(kind)] = a.order(kind)
	}
	return all
}

// isOrder reports whether a path is that of an operator's order, which takes a condition.
func isOrder(path string) bool {
	_, verb, _ := strings.Cut(path, ":")
	return slices.Contains(leadership.Orders(), leadership.OrderKind(verb))
}

func (a *api) order(kind leadership.OrderKind) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		condition, err := wire.ParseIfMatch(r.Header.Values("If-Match"))
		if err != nil {
			return err
		}
		var body wire.OrderRequest
		if err := call(w, r, &body); err != nil {
			return err
		}
		e, err := open(r)
		if err != nil {
			return err
		}
		lease, err := a.service.Order(r.Context(), body.Leadership(e, kind, condition))
		return changed(w, lease, err)
	}
}

func (a *api) overrides(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	orders, err := a.service.Overrides(r.Context(), election(r))
	if err != nil {
		return err
	}
	return ok(w, wire.NewOverrides(orders))
}

func (a *api) judge(w http.ResponseWriter, r *http.Request) error {
	var body wire.JudgeRequest
	if err := call(w, r, &body); err != nil {
		return err
	}
	e, err := open(r)
	if err != nil {
		return err
	}
	lease, err := a.service.Judge(r.Context(), body.Leadership(e))
	return changed(w, lease, err)
}

func (a *api) stepDown(w http.ResponseWriter, r *http.Request) error {
	var body wire.StepDownRequest
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
	lease, err := a.service.StepDown(r.Context(), request)
	return changed(w, lease, err)
}

func (a *api) requestApproval(w http.ResponseWriter, r *http.Request) error {
	var body wire.ApprovalNote
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
	lease, err := a.service.RequestApproval(r.Context(), request)
	return changed(w, lease, err)
}

func (a *api) explain(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	candidate := leadership.CandidateID(chi.URLParam(r, "candidate"))
	explanation, err := a.service.Explain(r.Context(), leadership.ExplainRequest{Election: election(r), CandidateID: candidate})
	if err != nil {
		return err
	}
	return ok(w, wire.NewExplanation(explanation))
}
