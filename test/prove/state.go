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
	Seed  uint64           `json:"seed"` // the first of each part
	Took  time.Duration    `json:"took"`
	Parts map[string]*done `json:"parts"`
}

func (p *proof) file(name string) string { return filepath.Join(p.dir, name) }

// resume reads the progress of an earlier process, if there was one.
func (p *proof) resume() error {
	text, err := os.ReadFile(p.file("state.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		from := json.NewDecoder(bytes.NewReader(text))
		from.DisallowUnknownFields() // of another version, which has counted otherwise
		err = from.Decode(&p.state)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s cannot be continued; remove it to begin a new night: %w", p.file("state.json"), err)
	case p.state.Seed != p.seed:
		return fmt.Errorf("the night in %s has seeds from %d, and not from %d: go on with -seed %[2]d, or begin a new one in another -dir", p.dir, p.state.Seed, p.seed)
	case p.state.Parts == nil:
		p.state.Parts = map[string]*done{}
	}
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
