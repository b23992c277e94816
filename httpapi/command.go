package httpapi

import (
	"net/http"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// command answers a call whose body is a command about the election in the path.
func (a *api) command(row wire.Row) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		at, err := row.Condition(r.Header)
		if err != nil {
			return err
		}
		body := row.Body()
		if err := call(w, r, wire.MaxBody, body); err != nil {
			return err
		}
		e, err := open(r)
		if err != nil {
			return err
		}
		command, err := body.Command(e, at)
		if err != nil {
			return err
		}
		lease, err := a.service.Do(r.Context(), command)
		return shown(w, lease, err)
	}
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
	lease, err := a.service.Do(r.Context(), leadership.Delete{Election: e, IfRevision: revision, Force: force})
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

// tick runs a Tick of the instance, for a scheduler. It may be repeated, also concurrently.
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
	return ok(w, wire.Tick{Announced: done.Announced, Expired: done.Expired, Retired: done.Retired}, err)
}
