// Package instancetest names the parts of an instance that tests outside of it drive by themselves:
// the simulation of package test/simulation, and what measures costs.
package instancetest

import (
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/line"
)

type (
	// Line is the candidates of one election in order, as an instance has them.
	Line = line.Line
	// Lines is what all lines of an instance have in common.
	Lines = line.Common
	// Caller is one call that stands in line.
	Caller = line.Caller
	// Client is told the answer to a call.
	Client = line.Client
	// Answer is what becomes of a call.
	Answer = line.Answer
	// Attempt asks the store for one place of a line.
	Attempt = line.Attempt
	// Outcome is how an attempt ended.
	Outcome = line.Outcome
)

// NewLine returns the line that a first caller begins; see package line.
func NewLine(common *Lines, wake func(), first *Caller, r leadership.AcquireRequest, now time.Duration) *Line {
	return line.New(common, wake, first, r, now)
}

// NewCaller returns a call that came at that moment.
func NewCaller(c Client, called time.Duration) *Caller { return line.NewCaller(c, called) }
