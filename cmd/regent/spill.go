package main

import (
	"bytes"
	"io"
	"time"
)

// spill is a writer that never waits. What its reader does not take is kept, up to a limit, and then spilt: whoever watches over a deadline must
// not wait for somebody who has stopped reading a log.
type spill struct {
	lines   chan []byte
	drained chan struct{} // of one: all that was kept before has been written
}

const (
	spillLines = 256
	spillWait  = 200 * time.Millisecond
)

// newSpill returns one that writes to w for as long as the process lasts.
func newSpill(w io.Writer) *spill {
	s := &spill{lines: make(chan []byte, spillLines), drained: make(chan struct{}, 1)}
	go func() {
		for line := range s.lines {
			if line == nil {
				s.drained <- struct{}{}
				return
			}
			w.Write(line)
		}
	}()
	return s
}

// Write keeps a line to be written.
func (s *spill) Write(line []byte) (int, error) {
	select {
	case s.lines <- bytes.Clone(line):
	default:
	}
	return len(line), nil
}

// drain waits a little for what was kept to be written. What comes later is not.
func (s *spill) drain() {
	late := time.After(spillWait)
	select {
	case s.lines <- nil:
	case <-late:
		return
	}
	select {
	case <-s.drained:
	case <-late:
	}
}
