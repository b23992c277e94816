package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/metric"

	"regent/leadership"
)

// Membership is what an instance knows of the members of elections.
type Membership interface {
	// MemberStats returns how many members are at the instance itself, by their role, and, of all
	// elections that it knows, how many are read-only, and the lowest participation: 1 if there is
	// none.
	MemberStats() (byRole map[leadership.Role]int64, readOnly int64, lowest float64)
	// JournalStats returns how many streams of journals are open at the instance itself, and how
	// many entries the slowest of the members that follow one here has not applied yet.
	JournalStats() (followers, lag int64)
}

// Members measures what the instance knows of members, at each collection.
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
