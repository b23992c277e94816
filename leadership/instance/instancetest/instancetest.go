// Package instancetest names the parts of an instance that tests outside of it drive by themselves:
// what the instance knows of the elections, and the lines of candidates that read it. Neither has a
// clock, a goroutine, a lock or a store.
package instancetest

import (
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/line"
	"regent/leadership/instance/internal/view"
)

type (
	// View is what an instance knows of the elections, and when it has to look again.
	View = view.View
	// ViewConfig is how a View is made.
	ViewConfig = view.Config
	// Election is what a View knows of one.
	Election = view.Election
	// Task is what a View wants done for an election.
	Task = view.Task
	// Lease is the store's word on an election.
	Lease = view.Lease

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

// Where the store's word on an election came from.
const (
	Read      = view.Read
	Committed = view.Committed
)

// Poll is how often an instance looks by itself while not all events are heard.
const Poll = view.Poll

// Aged is the lease after some time.
func Aged(l leadership.Lease, by time.Duration) leadership.Lease { return view.Aged(l, by) }

// NewView returns a view that knows nothing.
func NewView(c ViewConfig) *View { return view.New(c) }

// NewLine returns the line that a first caller begins; see package line.
func NewLine(common *Lines, e *Election, wake func(), first *Caller, r leadership.AcquireRequest, now time.Duration) *Line {
	return line.New(common, e, wake, first, r, now)
}

// NewCaller returns a call that came at that moment.
func NewCaller(c Client, called time.Duration) *Caller { return line.NewCaller(c, called) }
