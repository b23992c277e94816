package httpapi

import (
	"net/http"

	"regent/leadership/wire"
)

// tick does what is left to do, for a scheduler whose service may have slept. To do it twice, or at the same time, is the same as once.
func (a *api) tick(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	expired, announced, err := a.service.Tick(r.Context())
	if err != nil {
		return err
	}
	return ok(w, wire.Tick{Expired: expired, Announced: announced})
}
