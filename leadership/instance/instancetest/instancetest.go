// Package instancetest exports the parts of an instance that other packages' tests drive by
// themselves: its view of the elections, and its lines of candidates, which read the view. Neither
// has a clock, a goroutine, a lock or a store.
package instancetest

import (
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/line"
	"regent/leadership/instance/internal/view"
)

type (
	// View is an instance's knowledge of the elections, and of when to look again.
	View = view.View
	// ViewConfig configures a View.
	ViewConfig = view.Config
	// Election is a View's knowledge of one election.
	Election = view.Election
	// Task is work that a View asks for.
	Task = view.Task
	// Lease is the store's last answer about an election.
	Lease = view.Lease

	// Line is the candidates of one election in order, as an instance has them.
	Line = line.Line
	// Lines is the state shared by all lines of an instance.
	Lines = line.Common
	// Caller is one call that stands in line.
	Caller = line.Caller
	// Client is told the answer to a call.
	Client = line.Client
	// Answer is the answer to a call.
	Answer = line.Answer
	// Attempt asks the store for one place of a line.
	Attempt = line.Attempt
	// Outcome is how an attempt ended.
	Outcome = line.Outcome
)

// The sources of the store's answers about an election.
const (
	Read      = view.Read
	Committed = view.Committed
)

// Poll is how often an instance looks by itself while not all events are heard.
const Poll = view.Poll

// Aged returns the lease with its remaining times reduced by that time.
func Aged(l leadership.Lease, by time.Duration) leadership.Lease { return view.Aged(l, by) }

// NewView returns a view that knows nothing.
func NewView(c ViewConfig) *View { return view.New(c) }

// NewLine returns the line that a first caller begins; see package line.
func NewLine(common *Lines, e *Election, wake func(), first *Caller, r leadership.AcquireRequest, now time.Duration) *Line {
	return line.New(common, e, wake, first, r, now)
}

// NewCaller returns a call that came at called.
func NewCaller(c Client, called time.Duration) *Caller { return line.NewCaller(c, called) }
