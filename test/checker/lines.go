package checker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Write writes the recording as JSON, a line for each record: a Recording that has only this one.
func (r Recording) Write(w io.Writer) error {
	var errs []error
	out := json.NewEncoder(w)
	for i := range r.History {
		errs = append(errs, out.Encode(Recording{History: r.History[i : i+1]}))
	}
	for i := range r.Consumers {
		errs = append(errs, out.Encode(Recording{Consumers: r.Consumers[i : i+1]}))
	}
	for i := range r.Changes {
		errs = append(errs, out.Encode(Recording{Changes: r.Changes[i : i+1]}))
	}
	for i := range r.Heartbeats {
		errs = append(errs, out.Encode(Recording{Heartbeats: r.Heartbeats[i : i+1]}))
	}
	for i := range r.Readings {
		errs = append(errs, out.Encode(Recording{Readings: r.Readings[i : i+1]}))
	}
	for i := range r.Calls {
		errs = append(errs, out.Encode(Recording{Calls: r.Calls[i : i+1]}))
	}
	for i := range r.Beliefs {
		errs = append(errs, out.Encode(Recording{Beliefs: r.Beliefs[i : i+1]}))
	}
	for i := range r.Writes {
		errs = append(errs, out.Encode(Recording{Writes: r.Writes[i : i+1]}))
	}
	for i := range r.Faults {
		errs = append(errs, out.Encode(Recording{Faults: r.Faults[i : i+1]}))
	}
	for i := range r.Willing {
		errs = append(errs, out.Encode(Recording{Willing: r.Willing[i : i+1]}))
	}
	return errors.Join(errs...)
}

// Read reads what Write has written.
func Read(from io.Reader) (r Recording, err error) {
	in := json.NewDecoder(from)
	in.DisallowUnknownFields()
	for {
		var one Recording
		switch err := in.Decode(&one); {
		case errors.Is(err, io.EOF):
			return r, nil
		case err != nil:
			return r, fmt.Errorf("checker: read a recording: %w", err)
		}
		r.History = append(r.History, one.History...)
		r.Consumers = append(r.Consumers, one.Consumers...)
		r.Changes = append(r.Changes, one.Changes...)
		r.Heartbeats = append(r.Heartbeats, one.Heartbeats...)
		r.Readings = append(r.Readings, one.Readings...)
		r.Calls = append(r.Calls, one.Calls...)
		r.Beliefs = append(r.Beliefs, one.Beliefs...)
		r.Writes = append(r.Writes, one.Writes...)
		r.Faults = append(r.Faults, one.Faults...)
		r.Willing = append(r.Willing, one.Willing...)
	}
}
