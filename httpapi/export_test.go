package httpapi

import (
	"maps"

	"github.com/go-chi/chi/v5"

	"regent/leadership/wire"
)

// Route routes the rows as New does, with all handlers except those left out.
func Route(rows []wire.Row, without ...wire.Verb) error {
	a := &api{router: chi.NewRouter()}
	all := maps.Clone(a.handlers())
	for _, verb := range without {
		delete(all, verb)
	}
	return a.route(rows, all)
}
