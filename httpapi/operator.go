package httpapi

import (
	"net/http"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

func (a *api) operatorHandlers() handlers {
	return handlers{
		wire.VerbConfigure: a.configure,
		wire.VerbDelete:    a.delete,
		wire.VerbUnlock:    change(a, always(wire.UnlockRequest.Leadership), instance.Service.Unlock),
		wire.VerbTick:      a.tick,
	}
}

func (a *api) configure(w http.ResponseWriter, r *http.Request) error {
	condition, err := wire.ParseCondition(r.Header)
	if err != nil {
		return err
	}
	read := func(body wire.ConfigureRequest, e leadership.Election) (leadership.ConfigureRequest, error) {
		config, err := body.Leadership()
		return leadership.ConfigureRequest{Election: e, ConfigureCommand: leadership.ConfigureCommand{Config: config, IfRevision: condition}}, err
	}
	return change(a, read, instance.Service.Configure)(w, r)
}

func (a *api) delete(w http.ResponseWriter, r *http.Request) error {
	revision, err := wire.ParseIfMatch(r.Header.Values("If-Match"))
	if err != nil {
		return err
	}
	values, err := query(r, "force")
	if err != nil {
		return err
	}
	force, err := flag(values, "force")
	if err != nil {
		return err
	}
	e, err := open(r)
	if err != nil {
		return err
	}
	lease, err := a.service.Delete(r.Context(), leadership.DeleteRequest{
		Election:      e,
		DeleteCommand: leadership.DeleteCommand{IfRevision: revision, Force: force},
	})
	return shown(w, lease, err)
}

// shown answers with the election and its revision as an ETag.
func shown(w http.ResponseWriter, lease leadership.Lease, err error) error {
	if err != nil {
		return err
	}
	w.Header().Set("ETag", wire.ETag(lease.Revision))
	answer := wire.NewLease(lease)
	return okLease(w, &answer)
}

// tick does what is overdue, for a scheduler whose service may have slept. It may be repeated, also
// at the same time.
func (a *api) tick(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	if err := notAForm(r.Header); err != nil {
		return err
	}
	ctx, cancel := a.patience(w, r, instance.TickTime)
	defer cancel()
	done, err := a.service.Tick(ctx)
	if err != nil {
		return err
	}
	return ok(w, wire.Tick{Announced: done.Announced, Expired: done.Expired, Retired: done.Retired})
}
