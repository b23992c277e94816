package simulation

import (
	"context"
	"time"

	"regent/leadership"
	"regent/leadership/instance/instancetest"
	"regent/test/checker"
)

// cacheExpiry is how old a cached reading may be.
const cacheExpiry = 5 * time.Second

// observe reads an election through any instance: from the store, or from what the instance knows.
func (s *simulation) observe(e leadership.Election, strong bool) {
	i := s.any()
	recorded := -1
	if strong {
		recorded = s.record.called(checker.Call{Caller: "observer", Verb: checker.Get, Election: e})
	}
	alive := i.alive()
	s.send(func() {
		if !alive() {
			return
		}
		i.does(func() {
			i.call("", func(ctx context.Context) {
				reading, err := i.read(ctx, e, strong)
				if !i.ours(ctx) {
					return
				}
				s.send(func() {
					if recorded >= 0 {
						s.record.answered(recorded, reply{lease: &reading.Lease, err: err})
					}
				})
			})
		})
	})
}

// read reads an election, as package hub does except for shared reads, and checks the view's answer
// against the truth.
func (i *instance) read(ctx context.Context, e leadership.Election, strong bool) (leadership.Reading, error) {
	least, asked, alive := i.shown[e], i.now(), i.alive()
	if l := i.view.Fresh(e, 0); !strong && l != nil && asked < l.Over(cacheExpiry) {
		age := asked - l.Asked
		return i.shows(leadership.Reading{Lease: instancetest.Aged(l.Lease, age), Age: age, Bound: cacheExpiry}, least), nil
	}
	i.view.Reading(e)
	l, err := i.service.Get(ctx, e)
	if !alive() {
		return leadership.Reading{}, err
	}
	brought := &l
	if err != nil {
		brought = nil
	}
	i.learnt(e, i.view.Landed(e, brought, asked, i.now()))
	if err != nil {
		return leadership.Reading{}, err
	}
	reading := leadership.Reading{Lease: l}
	if !strong {
		reading.Age, reading.Bound = i.now()-asked, cacheExpiry
	}
	return i.shows(reading, least), nil
}

// shows checks BS for a reading: it was true within its age, and is no older than any reading
// shown, or event heard, before the reader asked.
func (i *instance) shows(r leadership.Reading, least leadership.Revision) leadership.Reading {
	t, now := i.s.truth, i.s.w.now
	if r.Revision < least {
		t.accuse(BS, "%s: instance %d shows revision %d after %d", r.Election, i.number, r.Revision, least)
	}
	since := now - i.clock.until(r.Age+time.Microsecond)
	if at, ok := t.replaced[next(r.Lease)]; r.Bound > 0 && ok && at < since {
		t.accuse(BS, "%s: instance %d shows revision %d as %v old, and it was replaced %v ago", r.Election, i.number, r.Revision, r.Age, now-at)
	}
	if truth := t.reign(r.Election); r.Bound > 0 && !t.skewed && r.State == leadership.Held && r.Token == truth.token && truth.late.IsZero() {
		end := truth.end.Sub(epoch) + t.slack
		if truth.yielded && r.Revision < truth.yieldedAt { // it is as the leader was promised
			end = truth.gave.Sub(epoch) + t.slack
		}
		if now+i.clock.until(r.ExpiresIn)-i.clock.until(drift(r)) > end {
			t.accuse(BS, "%s: instance %d shows a lease as lasting another %v, and it ends at %v", r.Election, i.number, r.ExpiresIn, end)
		}
	}
	i.shown[r.Election] = max(i.shown[r.Election], r.Revision)
	return r
}

// drift is the error that the instance's clock may add to the remaining time of a lease.
func drift(r leadership.Reading) time.Duration { return (r.Age+r.ExpiresIn)/500 + time.Microsecond }

// next is the event that makes a reading out of date.
func next(l leadership.Lease) leadership.EventID {
	return leadership.EventID{Election: l.Election, Revision: l.Revision + 1}
}
