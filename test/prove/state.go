package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// state is the stored progress of a night; a night that is started again continues from it. The
// quick set keeps none.
type state struct {
	Set   string           `json:"set"`  // night
	Seed  uint64           `json:"seed"` // the first of each part
	Took  time.Duration    `json:"took"`
	Parts map[string]*done `json:"parts"`
}

// night is the name of the set that continues where it has stopped.
const night = "night"

func (p *proof) file(name string) string { return filepath.Join(p.dir, name) }

// resume reads the progress of an earlier process, if there was one.
func (p *proof) resume() error {
	text, err := os.ReadFile(p.file("state.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = p.state.read(text)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be continued; remove it to begin a new night: %w", p.file("state.json"), err)
	}
	if p.state.Seed != p.seed {
		return fmt.Errorf("the night in %s has seeds from %d, and not from %d: go on with -seed %[2]d, or begin a new one in another -dir", p.dir, p.state.Seed, p.seed)
	}
	return nil
}

// read parses a saved state.
func (s *state) read(text []byte) error {
	var saved state
	from := json.NewDecoder(bytes.NewReader(text))
	from.DisallowUnknownFields() // of another version, which has counted otherwise
	if err := from.Decode(&saved); err != nil {
		return err
	}
	if from.More() {
		return errors.New("something follows it")
	}
	switch {
	case saved.Set != night:
		return fmt.Errorf("it is of the set %q", saved.Set)
	case saved.Seed == 0:
		return errors.New("its first seed is 0")
	case saved.Took < 0:
		return errors.New("it took less than no time")
	}
	if saved.Parts == nil {
		saved.Parts = map[string]*done{}
	}
	*s = saved
	return nil
}

// of returns the progress of a part.
func (s *state) of(part string) *done {
	d := s.Parts[part]
	if d == nil {
		d = &done{}
		s.Parts[part] = d
	}
	if d.Figures == nil {
		d.Figures = tally{}
	}
	return d
}

// save writes the report and, in a night, the progress. Call with the mutex held.
func (p *proof) save() error {
	p.state.Took = p.before + time.Since(p.began)
	if p.night {
		text, err := json.MarshalIndent(p.state, "", "  ")
		if err != nil {
			return err
		}
		if err := p.write("state.json", text); err != nil {
			return err
		}
	}
	return p.write("report.md", []byte(p.table()))
}

// write writes a file, or leaves the one that is there.
func (p *proof) write(name string, text []byte) error {
	next := p.file(name + ".next")
	if err := os.WriteFile(next, text, 0o644); err != nil {
		return err
	}
	return os.Rename(next, p.file(name))
}
