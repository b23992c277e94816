package checker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"regent/leadership"
	"regent/leadership/wire"
)

// line is one record as it is written down: exactly one of its members.
type line struct {
	Event     *wire.Event `json:"event,omitempty"` // of the history
	Consumer  *Consumer   `json:"consumer,omitempty"`
	Delivery  *delivery   `json:"delivery,omitempty"` // to a consumer that stands above
	Change    *Change     `json:"change,omitempty"`
	Heartbeat *Heartbeat  `json:"heartbeat,omitempty"`
	Reading   *Reading    `json:"reading,omitempty"`
	Call      *callLine   `json:"call,omitempty"`
	Belief    *Belief     `json:"belief,omitempty"`
	Write     *Write      `json:"write,omitempty"`
	Fault     *Fault      `json:"fault,omitempty"`
	Willing   *Willing    `json:"willing,omitempty"`
}

type delivery struct {
	Consumer int        `json:"consumer"` // its place among them
	Event    wire.Event `json:"event"`
}

// Write writes the recording down, one JSON object a line.
func (r Recording) Write(w io.Writer) error {
	out := json.NewEncoder(w)
	var errs []error
	put := func(l line) { errs = append(errs, out.Encode(l)) }
	for _, e := range r.History {
		put(line{Event: new(wire.NewEvent(e))})
	}
	for i, c := range r.Consumers {
		put(line{Consumer: &c})
		for _, e := range c.Got {
			put(line{Delivery: &delivery{i, wire.NewEvent(e)}})
		}
	}
	for _, c := range r.Changes {
		put(line{Change: &c})
	}
	for _, h := range r.Heartbeats {
		put(line{Heartbeat: &h})
	}
	for _, reading := range r.Readings {
		put(line{Reading: &reading})
	}
	for _, c := range r.Calls {
		put(line{Call: newCallLine(c)})
	}
	for _, b := range r.Beliefs {
		put(line{Belief: &b})
	}
	for _, write := range r.Writes {
		put(line{Write: &write})
	}
	for _, f := range r.Faults {
		put(line{Fault: &f})
	}
	for _, w := range r.Willing {
		put(line{Willing: &w})
	}
	return errors.Join(errs...)
}

// Read reads what Write has written.
func Read(from io.Reader) (Recording, error) {
	var r Recording
	for in := json.NewDecoder(from); ; {
		var l line
		switch err := in.Decode(&l); {
		case errors.Is(err, io.EOF):
			return r, nil
		case err != nil:
			return r, fmt.Errorf("checker: %w", err)
		}
		if err := r.add(l); err != nil {
			return r, err
		}
	}
}

func (r *Recording) add(l line) error {
	switch {
	case l.Event != nil:
		r.History = append(r.History, l.Event.Leadership())
	case l.Consumer != nil:
		r.Consumers = append(r.Consumers, *l.Consumer)
	case l.Delivery != nil:
		return r.deliver(l.Delivery.Consumer, l.Delivery.Event.Leadership())
	case l.Change != nil:
		r.Changes = append(r.Changes, *l.Change)
	case l.Heartbeat != nil:
		r.Heartbeats = append(r.Heartbeats, *l.Heartbeat)
	case l.Reading != nil:
		r.Readings = append(r.Readings, *l.Reading)
	case l.Call != nil:
		r.Calls = append(r.Calls, l.Call.call())
	case l.Belief != nil:
		r.Beliefs = append(r.Beliefs, *l.Belief)
	case l.Write != nil:
		r.Writes = append(r.Writes, *l.Write)
	case l.Fault != nil:
		r.Faults = append(r.Faults, *l.Fault)
	case l.Willing != nil:
		r.Willing = append(r.Willing, *l.Willing)
	default:
		return errors.New("checker: a line that says nothing")
	}
	return nil
}

func (r *Recording) deliver(consumer int, e leadership.Event) error {
	if consumer < 0 || consumer >= len(r.Consumers) {
		return fmt.Errorf("checker: a delivery to consumer %d, of which nothing was said", consumer)
	}
	c := &r.Consumers[consumer]
	c.Got = append(c.Got, e)
	return nil
}
