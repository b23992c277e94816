package simulation

import (
	"context"
	"fmt"
	"time"

	"regent/leadership"
	"regent/test/checker"
)

// cacheExpiry is how old a cached reading may be.
const cacheExpiry = 5 * time.Second

// observe reads an election through any instance: from the store, or from what the instance knows.
func (s *simulation) observe(e leadership.Election, strong bool) {
	i, asked := s.any(), s.w.now
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
					s.record.read(reading, err, asked)
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
		return i.shows(leadership.Reading{Lease: l.Aged(age), Age: age, Bound: cacheExpiry}, least), nil
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

// read records a reading of an observer.
func (r *record) read(l leadership.Reading, err error, asked time.Duration) {
	if r != nil && err == nil && l.Bound == 0 {
		r.recording.Readings = append(r.recording.Readings, checker.Reading{
			Shown:  &l.Lease,
			Reader: "observer", Election: l.Election, Revision: l.Revision, State: l.State, Leader: l.LeaderID, Token: l.Token,
			Asked: asked, Answered: r.w.now, Strong: true,
		})
	}
}

// committed records a change as it is committed, and the end that the lease had before.
func (r *record) committed(ch leadership.Change, end, at time.Time) {
	if r == nil {
		return
	}
	now, e := r.w.now, ch.Record
	for _, event := range ch.Events {
		r.recording.Changes = append(r.recording.Changes, checker.Change{Election: e.Election, Revision: event.Revision, Asked: now, Answered: now})
	}
	if !ch.Heartbeat || r.skewed {
		return
	}
	begun := ch.Committed(at)
	beat := checker.Heartbeat{Election: e.Election, Token: e.Token, Lease: begun.LeaseEnd().Sub(begun.HeartbeatAt), Asked: now, Answered: now}
	if !ch.Before.IsZero() && !at.Before(end) {
		beat.Answered = checker.Forever // it came too late, and is going to be taken back
	}
	r.recording.Heartbeats = append(r.recording.Heartbeats, beat)
}

// hearing records the events that an instance hears, in order: one that comes too soon waits for
// the missing ones, as in its hub.
type hearing struct {
	consumer checker.Consumer
	next     map[leadership.Election]leadership.Revision // of the first that is missing
	early    map[leadership.EventID]leadership.Event
}

// listens starts a consumer of all events from now on, in place of the one before.
func (r *record) listens(before *hearing, name string, d *data) *hearing {
	if r == nil {
		return nil
	}
	r.ends(before)
	c := checker.Consumer{Name: fmt.Sprintf("%s (%d)", name, len(r.hearings)), After: make(map[leadership.Election]leadership.Revision)}
	e := &hearing{c, make(map[leadership.Election]leadership.Revision), make(map[leadership.EventID]leadership.Event)}
	for name, row := range d.elections {
		c.After[name], e.next[name] = row.record.Revision, row.record.Revision+1
	}
	r.hearings = append(r.hearings, e)
	return e
}

// ends records that it may miss events from now on.
func (r *record) ends(e *hearing) {
	if r != nil && e != nil {
		e.consumer.Partial = true
	}
}

// heard records an event that an instance hears.
func (r *record) heard(e *hearing, event leadership.Event) {
	if r == nil {
		return
	}
	name := event.Election
	e.next[name] = max(e.next[name], 1)
	e.early[event.ID()] = event
	for id, ok := event.ID(), event.Revision <= e.next[name]; ok; event, ok = e.early[id] {
		e.consumer.Got = append(e.consumer.Got, event)
		delete(e.early, id)
		e.next[name] = max(e.next[name], event.Revision+1)
		id.Revision = e.next[name]
	}
}

// topic records an event that was published in order.
func (r *record) topic(e leadership.Event) {
	if r != nil {
		r.bus.Got = append(r.bus.Got, e)
	}
}
