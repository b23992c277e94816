package telemetry

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/metric"

	"regent/leadership"
	"regent/leadership/instance"
)

// maxNamed is how many elections are shown by name at most, because each costs four series, and one
// with seats five.
const maxNamed = 200

// ByName shows the elections that match the names and patterns by their names, the first maxNamed
// that are known: whether each is led, its token, the age of its state, how many candidates wait
// here, and how many of its seats are free. The series of an election end when it is deleted. A
// collection reads nothing from the store: Follow does. Call ByName once, before the store is used.
func (m *Metrics) ByName(all []leadership.Election) error {
	m.elections.named = all
	b := newBuilder(m.meter)
	led, token, waiting, free, omitted := b.gauge(nameLed), b.gauge(nameToken), b.gauge(nameInLine), b.gauge(nameFree), b.gauge(nameOmitted)
	age := b.age(nameChanged)
	return b.observe(func(_ context.Context, o metric.Observer) {
		shown, more := m.elections.byName()
		for _, s := range shown {
			of := with("election", s.election)
			o.ObserveInt64(led, s.led, of)
			o.ObserveInt64(token, int64(s.token), of)
			o.ObserveInt64(waiting, int64(s.waiting), of)
			if s.seats > 0 {
				o.ObserveInt64(free, int64(s.seats)-s.led, of)
			}
			if s.known {
				o.ObserveFloat64(age, s.age.Seconds(), of)
			}
		}
		o.ObserveInt64(omitted, int64(more))
	})
}

// byName has the values of an election that is shown by name.
type byName struct {
	election leadership.Election
	led      int64
	seats    int // how many seats it has
	token    leadership.Token
	waiting  int
	age      time.Duration
	known    bool // the age is known
}

// byName returns the elections that are shown, and how many others match. Being shown counts as
// news, so these are the last to be forgotten.
func (es *elections) byName() (shown []byName, more int) {
	es.mu.Lock()
	defer es.mu.Unlock()
	now := es.clock.now()
	for e, s := range es.shown {
		es.known.Get(e)
		one := byName{election: e, token: s.token, waiting: s.waiting, seats: s.seats}
		since := s.endedAt
		if s.state == held {
			one.led, since = 1, s.grants[0]
		}
		if s.seats > 0 {
			es.relate(s)
			one.led, since = int64(min(s.led, s.seats)), time.Time{}
		}
		one.age, one.known = max(now.Sub(since), 0), !since.IsZero()
		shown = append(shown, one)
	}
	return shown, es.matched - len(es.shown)
}

// names reports whether an election matches the names and patterns of ByName.
func (es *elections) names(e leadership.Election) bool {
	return slices.ContainsFunc(es.named, func(p leadership.Election) bool { return p.Covers(e) })
}

// show begins or ends the series of an election that has changed. Call with mu held.
func (es *elections) show(s *standing) {
	switch {
	case !s.named:
	case s.state != held && s.state != vacant:
		delete(es.shown, s.election)
	case len(es.shown) < maxNamed:
		es.shown[s.election] = s
	}
}

// shows reports whether an election is shown by its name.
func (es *elections) shows(e leadership.Election) bool {
	es.mu.Lock()
	defer es.mu.Unlock()
	return es.shown[e] != nil
}

// Source is an instance, which reads from the store that the Metrics have measured.
type Source interface {
	List(context.Context, leadership.ListRequest) (leadership.Page, error)
	Await(ctx context.Context, r leadership.ReadRequest, wait time.Duration) (reading leadership.Reading, news bool, err error)
	Feed(ctx context.Context, which leadership.Selection, after instance.Cursor) (*instance.Feed, error)
}

// pauseNamed is how long Follow waits after an error of the store.
const pauseNamed = 5 * time.Second

// Follow keeps the elections shown by name up to date until ctx ends: it reads them once, up to a
// page for each pattern, and then hears the events of all elections. With a bus that costs one read
// of the history a minute, and none while there is no news.
func (m *Metrics) Follow(ctx context.Context, of Source) {
	if m.idle || len(m.elections.named) == 0 {
		return
	}
	for ctx.Err() == nil {
		_ = m.follow(ctx, of) // the last known state counts until the store answers again
		select {
		case <-time.After(pauseNamed):
		case <-ctx.Done():
		}
	}
}

func (m *Metrics) follow(ctx context.Context, of Source) error {
	feed, err := of.Feed(ctx, leadership.Selection{}, instance.Cursor{})
	if err != nil {
		return err
	}
	defer feed.Close()
	for _, e := range m.elections.named {
		if err := m.meet(ctx, of, e); err != nil {
			return err
		}
	}
	for {
		items, err := feed.Next(ctx)
		if err != nil {
			return err
		}
		for _, i := range items {
			m.elections.hear(i.Event)
		}
	}
}

// meet reads the existing elections of a name or pattern. By Await it also arranges that the end of
// a lease that was granted before this instance began will be recorded.
func (m *Metrics) meet(ctx context.Context, of Source, e leadership.Election) error {
	names := []leadership.Election{e}
	if begin, pattern := e.Pattern(); pattern {
		page, err := of.List(ctx, leadership.ListRequest{Prefix: begin, Limit: leadership.MaxPageSize})
		if err != nil {
			return err
		}
		names = nil
		for _, l := range page.Leases {
			if m.elections.shows(l.Election) {
				names = append(names, l.Election)
			}
		}
	}
	for i := 0; i < len(names); i++ {
		reading, _, err := of.Await(ctx, leadership.ReadRequest{Election: names[i]}, 0)
		if err != nil && !errors.Is(err, leadership.NotFound) {
			return err
		}
		for n := range reading.Config.Seats { // to know which seats are led
			names = append(names, names[i].Seat(n+1))
		}
	}
	return nil
}
