package main

import (
	"bytes"
	"io"
	"time"
)

// asyncWriter is a writer that never blocks. It buffers what its reader does not take and drops the
// rest: a process that enforces a deadline must not wait for the reader of a log.
type asyncWriter struct {
	lines   chan []byte
	drained chan struct{} // capacity 1: everything buffered before has been written
}

const (
	asyncLines = 256
	drainLimit = 200 * time.Millisecond
)

// newAsyncWriter returns an asyncWriter that writes to w until drain is called.
func newAsyncWriter(w io.Writer) *asyncWriter {
	s := &asyncWriter{lines: make(chan []byte, asyncLines), drained: make(chan struct{}, 1)}
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

// Write buffers a line, or drops it if the buffer is full.
func (s *asyncWriter) Write(line []byte) (int, error) {
	select {
	case s.lines <- bytes.Clone(line):
	default:
	}
	return len(line), nil
}

// drain waits up to drainLimit until the buffered lines are written. Later lines are dropped.
func (s *asyncWriter) drain() {
	late := time.After(drainLimit)
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
