package proxy

// End is one end of a connection.
type End = end

// Between returns a hop that has one connection, and no sockets.
func Between(client, server End) *Hop {
	h := newHop()
	p := h.admit(client)
	h.running.Go(func() {
		defer h.leave(p)
		p.carry(server)
	})
	return h
}

// Quit is Close without sockets.
func (h *Hop) Quit() { h.quit() }

// MaxHeld is how many pieces one way of a connection holds.
const MaxHeld = maxHeld
