package wire

// Health is the reply to a health check.
type Health struct {
	Status string `json:"status"` // "ok"
}
