package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/metric"

	"regent/leadership"
)

// Membership is an instance, which knows the members of elections.
type Membership interface {
	// MemberStats returns the number of members at the instance itself by role and, for all
	// elections that it knows, how many are read-only, and the lowest participation (1 if there are
	// none).
	MemberStats() (byRole map[leadership.Role]int64, readOnly int64, lowest float64)
	// JournalStats returns how many streams of journals are open at the instance itself, and the
	// largest lag, in entries, of a member that follows one here.
	JournalStats() (followers, lag int64)
}

// Members measures the instance's members at each collection.
func (m *Metrics) Members(of Membership) error {
	b := newBuilder(m.meter)
	present, halted, lowest := b.gauge(nameMembers), b.gauge(nameReadOnly), b.age(nameLowest)
	follow, behind := b.gauge(nameFollows), b.gauge(nameLag)
	return b.observe(func(_ context.Context, o metric.Observer) {
		byRole, readOnly, part := of.MemberStats()
		for _, role := range roles {
			o.ObserveInt64(present, byRole[role], with("role", role))
		}
		o.ObserveInt64(halted, readOnly)
		o.ObserveFloat64(lowest, part)
		followers, lag := of.JournalStats()
		o.ObserveInt64(follow, followers)
		o.ObserveInt64(behind, lag)
	})
}
