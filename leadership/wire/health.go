package wire

// Health is the reply to a health check.
type Health struct {
	Status HealthStatus `json:"status"`
	Detail string       `json:"detail,omitempty"` // what is not as it should be
}

// HealthStatus says how an instance is that serves.
type HealthStatus string

// The states of an instance that serves. One that does not answers with a problem.
const (
	Healthy  HealthStatus = "ok"
	Degraded HealthStatus = "degraded" // everything works, some of it later or at a higher price
)
