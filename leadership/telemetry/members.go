package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"

	"regent/leadership"
)

// Membership is what an instance knows of the members of elections.
type Membership interface {
	// MemberStats returns how many members are at the instance itself, by their role, and, of all
	// elections that it knows, how many are read-only, and the lowest participation: 1 if there is
	// none.
	MemberStats() (byRole map[leadership.Role]int64, readOnly int64, lowest float64)
}

// Members measures what the instance knows of members, at each collection.
func (m *Metrics) Members(of Membership) error {
	b := newBuilder(m.meter)
	present, halted, lowest := b.gauge(nameMembers), b.gauge(nameReadOnly), b.age(nameLowest)
	b.callback(func(_ context.Context, o metric.Observer) error {
		byRole, readOnly, part := of.MemberStats()
		for _, role := range roles {
			o.ObserveInt64(present, byRole[role], with("role", role))
		}
		o.ObserveInt64(halted, readOnly)
		o.ObserveFloat64(lowest, part)
		return nil
	}, present, halted, lowest)
	return errors.Join(b.failed...)
}

// Followers is what an instance knows of the members that follow journals.
type Followers interface {
	// JournalStats returns how many members that follow a journal are at the instance itself, and how
	// many entries the slowest of them has not applied yet.
	JournalStats() (followers, lag int64)
}

// Followers measures how far followers of journals are, at each collection.
func (m *Metrics) Followers(of Followers) error {
	b := newBuilder(m.meter)
	follow, behind := b.gauge(nameFollows), b.gauge(nameLag)
	b.callback(func(_ context.Context, o metric.Observer) error {
		followers, lag := of.JournalStats()
		o.ObserveInt64(follow, followers)
		o.ObserveInt64(behind, lag)
		return nil
	}, follow, behind)
	return errors.Join(b.failed...)
}
