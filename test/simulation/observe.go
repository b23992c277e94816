package simulation

import (
	"context"
	"fmt"
	"time"

	"regent/leadership"
	"regent/test/checker"
)

// observe reads an election from the store, through any instance.
func (s *simulation) observe(e leadership.Election) {
	i, asked := s.any(), s.w.now
	recorded := s.record.called(checker.Call{Caller: "observer", Verb: checker.Get, Election: e})
	alive := i.alive()
	s.send(func() {
		if !alive() {
			return
		}
		i.does(func() {
			i.call("", func(ctx context.Context) {
				l, err := i.service.Get(ctx, e)
				if !i.ours(ctx) {
					return
				}
				s.send(func() {
					s.figures.Reads++
					s.record.answered(recorded, reply{lease: &l, err: err})
					s.record.read(l, err, asked)
				})
			})
		})
	})
}

// read takes down what an observer was shown.
func (r *record) read(l leadership.Lease, err error, asked time.Duration) {
	if r != nil && err == nil {
		r.recording.Readings = append(r.recording.Readings, checker.Reading{
			Reader: "observer", Election: l.Election, Revision: l.Revision, State: l.State, Leader: l.LeaderID, Token: l.Token,
			Asked: asked, Answered: r.w.now, Strong: true,
		})
	}
}

// committed takes down a change, right when it is committed, and the end that the lease had before.
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
	beat := checker.Heartbeat{Election: e.Election, Token: e.Token, Lease: e.LeaseDuration, Asked: now, Answered: now}
	if !ch.Before.IsZero() && !at.Before(end) {
		beat.Answered = checker.Forever // it came too late, and is going to be taken back
	}
	r.recording.Heartbeats = append(r.recording.Heartbeats, beat)
}

// ear is what an instance hears, in order, while it hears all: what comes too soon waits for what is missing, as in its hub.
type ear struct {
	consumer checker.Consumer
	next     map[leadership.Election]leadership.Revision // of the first that is missing
	early    map[leadership.EventID]leadership.Event
}

// listens begins a consumer that hears of all that is committed from now on, instead of the one before.
func (r *record) listens(before *ear, name string, d *data) *ear {
	if r == nil {
		return nil
	}
	r.ends(before)
	c := checker.Consumer{Name: fmt.Sprintf("%s (%d)", name, len(r.ears)), After: make(map[leadership.Election]leadership.Revision)}
	e := &ear{c, make(map[leadership.Election]leadership.Revision), make(map[leadership.EventID]leadership.Event)}
	for name, row := range d.elections {
		c.After[name], e.next[name] = row.record.Revision, row.record.Revision+1
	}
	r.ears = append(r.ears, e)
	return e
}

// ends says that it may not hear of anything any more.
func (r *record) ends(e *ear) {
	if r != nil && e != nil {
		e.consumer.Partial = true
	}
}

// heard takes down what an instance hears.
func (r *record) heard(e *ear, event leadership.Event) {
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

// topic takes down what was published in order.
func (r *record) topic(e leadership.Event) {
	if r != nil {
		r.bus.Got = append(r.bus.Got, e)
	}
}
