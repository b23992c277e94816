package httpapi

import (
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// Spec returns the API's contract, an OpenAPI 3.1 document.
func Spec() []byte { return []byte(specification) }

//go:embed openapi.yaml
var specification string

func spec() handler {
	tag := fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(specification)))
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := noQuery(r); err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/yaml")
		w.Header().Set("Cache-Control", "no-cache") // a cache may keep it, and must revalidate it
		w.Header().Set("ETag", tag)
		r.Header.Del("Range") // always the whole document
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(specification))
		return nil
	}
}

// live reports that the process answers. It does not ask the store: a store that is out of reach is
// no reason to restart.
func live(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	return ok(w, wire.Health{Status: wire.Healthy}, nil)
}

// readiness reports whether requests should be sent here.
func (a *api) readiness(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	if a.ready == nil {
		return ok(w, wire.Health{Status: wire.Healthy}, nil)
	}
	degraded, err := a.ready(r.Context())
	var code leadership.Code
	switch {
	case err == nil && degraded != "":
		return ok(w, wire.Health{Status: wire.Degraded, Detail: degraded}, nil)
	case err == nil:
		return ok(w, wire.Health{Status: wire.Healthy}, nil)
	case errors.As(err, &code):
		return err
	}
	return fmt.Errorf("%w: %w", leadership.StoreUnavailable, err)
}
