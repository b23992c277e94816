package httpapi

import (
	_ "embed"
	"errors"
	"fmt"
	"net/http"

	"regent/leadership"
	"regent/leadership/wire"
)

// Spec returns the API's contract, an OpenAPI 3.1 document.
func Spec() []byte { return []byte(specification) }

//go:embed openapi.yaml
var specification string

func (a *api) healthHandlers() handlers {
	return handlers{wire.VerbLive: live, wire.VerbReady: a.readiness, wire.VerbSpec: spec}
}

func spec(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.Write([]byte(specification)) // an error means that the caller has left
	return nil
}

// live reports that the process answers. It does not ask the store: a store that is out of reach is
// no reason to restart.
func live(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	return ok(w, wire.Health{Status: wire.Healthy})
}

// readiness reports whether requests should be sent here.
func (a *api) readiness(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	if a.ready == nil {
		return ok(w, wire.Health{Status: wire.Healthy})
	}
	degraded, err := a.ready(r.Context())
	var code leadership.Code
	switch {
	case err == nil && degraded != "":
		return ok(w, wire.Health{Status: wire.Degraded, Detail: degraded})
	case err == nil:
		return ok(w, wire.Health{Status: wire.Healthy})
	case errors.As(err, &code):
		return err
	}
	return fmt.Errorf("%w: %w", leadership.StoreUnavailable, err)
}
