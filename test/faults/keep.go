package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// keep saves a run beside the logs of its processes: the plan, the verdict, the recording, and the
// store's contents.
func (s *session) keep(f findings, why error) error {
	return errors.Join(
		s.write("plan.txt", func(w io.Writer) error { _, err := fmt.Fprintln(w, s.plan); return err }),
		s.write("verdict.txt", func(w io.Writer) error { _, err := fmt.Fprintln(w, why); return err }),
		s.write("recording.jsonl", f.recording.Write),
		s.write("store.jsonl", f.truth.write),
	)
}

func (s *session) write(name string, how func(io.Writer) error) error {
	file, err := os.Create(s.path(name))
	if err != nil {
		return err
	}
	return errors.Join(how(file), file.Close())
}

// write writes the records, then the events.
func (t truth) write(w io.Writer) error {
	out := json.NewEncoder(w)
	var errs []error
	for _, r := range t.Records {
		errs = append(errs, out.Encode(r))
	}
	for _, e := range t.History {
		errs = append(errs, out.Encode(e))
	}
	return errors.Join(errs...)
}
