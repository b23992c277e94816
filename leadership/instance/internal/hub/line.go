package hub

import (
	"slices"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
)

// Wait lets a line of candidates listen to an election: wake, a channel of one, is sent to when there is
// news, and whenever SetLive is called. Call it, and Unwait, from within View.
func (h *Hub) Wait(e leadership.Election, wake chan struct{}) *view.Election {
	a := h.audience(e)
	a.lines = append(a.lines, wake)
	return h.view.Wait(e)
}

// Unwait ends the listening.
func (h *Hub) Unwait(e *view.Election, wake chan struct{}) {
	a := h.audiences[e.Name()]
	a.lines = slices.DeleteFunc(a.lines, func(c chan struct{}) bool { return c == wake })
	h.view.Unwait(e)
	h.tidy(e.Name())
}
