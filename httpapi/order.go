package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

func (a *api) orderHandlers() handlers {
	all := handlers{
		wire.VerbOverrides:       a.overrides,
		wire.VerbJudge:           conditional(a, wire.JudgeRequest.Leadership, instance.Service.Judge),
		wire.VerbStepDown:        change(a, wire.StepDownRequest.Leadership, instance.Service.StepDown),
		wire.VerbRequestApproval: change(a, wire.ApprovalNote.Leadership, instance.Service.RequestApproval),
		wire.VerbExplain:         a.explain,
	}
	for _, kind := range leadership.Orders() {
		all[wire.Verb(kind)] = a.order(kind)
	}
	return all
}

// change answers a call whose body B asks for a change R of the election in the path.
func change[B, R any](a *api, read func(B, leadership.Election) (R, error), do func(instance.Service, context.Context, R) (leadership.Lease, error)) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var body B
		if err := call(w, r, &body); err != nil {
			return err
		}
		e, err := open(r)
		if err != nil {
			return err
		}
		request, err := read(body, e)
		if err != nil {
			return err
		}
		lease, err := do(a.service, r.Context(), request)
		return shown(w, lease, err)
	}
}

// always is a reader of bodies that finds no error.
func always[B, R any](read func(B, leadership.Election) R) func(B, leadership.Election) (R, error) {
	return func(body B, e leadership.Election) (R, error) { return read(body, e), nil }
}

// conditional is change for a call that names the revision that it was decided on.
func conditional[B, R any](a *api, read func(B, leadership.Election, leadership.Revision) (R, error), do func(instance.Service, context.Context, R) (leadership.Lease, error)) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		condition, err := wire.ParseIfMatch(r.Header.Values("If-Match"))
		if err != nil {
			return err
		}
		return change(a, func(body B, e leadership.Election) (R, error) { return read(body, e, condition) }, do)(w, r)
	}
}

func (a *api) order(kind leadership.OrderKind) handler {
	return conditional(a, func(body wire.OrderRequest, e leadership.Election, at leadership.Revision) (leadership.OrderRequest, error) {
		return body.Leadership(e, kind, at)
	}, instance.Service.Order)
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

func (a *api) explain(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	candidate := strings.TrimSuffix(chi.URLParam(r, "candidate"), wire.Explain)
	explanation, err := a.service.Explain(r.Context(), leadership.ExplainRequest{Election: election(r), CandidateID: leadership.CandidateID(candidate)})
	if err != nil {
		return err
	}
	return ok(w, wire.NewExplanation(explanation))
}
