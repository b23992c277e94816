package wire

// Health is the reply to a health check.
type Health struct {
	Status HealthStatus `json:"status"`
	Detail string       `json:"detail,omitzero"` // the problem, for a person
}

// HealthStatus is how well an instance serves.
type HealthStatus string

// The states of an instance that serves. An instance that cannot serve answers with a problem.
const (
	Healthy  HealthStatus = "ok"
	Degraded HealthStatus = "degraded" // all calls work, but something needs attention
)
