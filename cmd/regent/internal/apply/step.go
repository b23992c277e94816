package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"regent/leadership"
)

// Action is the action of a step on its election.
type Action string

const (
	None    Action = "none" // the election is as the files declare it
	Create  Action = "create"
	Change  Action = "change"
	Restore Action = "restore" // it was deleted
	Delete  Action = "delete"
)

// Step is the change of one election that applying the files makes.
type Step struct {
	Election leadership.Election
	Action   Action
	Place    string // in the files; "" for an election that is in none
	// Diff has the members that differ. If Action is not Change, these are all members that the
	// election will have or, if it is deleted, has had.
	Diff []Member
	// Refused is the error if the Options do not allow the step; nil if they do.
	Refused error

	was      leadership.Config // if Action is Change or Delete
	want     leadership.Config // otherwise
	revision leadership.Revision
	force    bool
}

// Server has the calls that this package makes; a *client.Client is one. Get must read strongly.
type Server interface {
	Get(context.Context, leadership.Election) (leadership.Lease, error)
	List(context.Context, leadership.ListRequest) (leadership.Page, error)
	Do(context.Context, leadership.Command) (leadership.Lease, error)
}

// Conflict is the error of a step whose election another caller has configured, created or deleted
// since Look has read it. Nothing was written.
type Conflict struct{ refusal *leadership.Error }

func (c Conflict) Error() string { return c.refusal.Error() }

// Unwrap returns a *leadership.Error with the code RevisionMismatch.
func (c Conflict) Unwrap() error { return c.refusal }

func conflict(s Step, what string) error {
	return Conflict{&leadership.Error{
		Code:   leadership.RevisionMismatch,
		Detail: fmt.Sprintf("election %q %s since it was read; nothing was written to it; look at the difference with --dry-run, and apply again", s.Election, what),
	}}
}

// tries limits how often a step is tried while terms begin and end, each of which raises the
// revision.
const tries = 10

// Do writes the step and returns the new state of the election. It must not be called for a step
// that is refused or has nothing to do. The error is a Conflict, or that of the server. Do is
// idempotent.
func (s Step) Do(ctx context.Context, server Server) (leadership.Lease, error) {
	for try := 1; ; try++ {
		lease, err := s.write(ctx, server)
		if s.Action == Delete && errors.Is(err, leadership.LeaseHeld) {
			return leadership.Lease{}, refuseHeld(s.Election, "a candidate")
		}
		if try == tries || !errors.Is(err, leadership.RevisionMismatch) {
			return lease, err
		}
		if s.revision, err = s.lookAgain(ctx, server); err != nil {
			return leadership.Lease{}, err
		}
	}
}

// write makes one write, on the condition that the election is at the revision that was read.
func (s Step) write(ctx context.Context, server Server) (leadership.Lease, error) {
	if s.Action == Delete {
		return server.Do(ctx, leadership.Delete{Election: s.Election, IfRevision: s.revision, Force: s.force})
	}
	return server.Do(ctx, leadership.Configure{Election: s.Election, Config: s.want, IfRevision: s.revision})
}

// lookAgain returns the new revision of an election that has changed since it was read, or a
// Conflict if more than its leader has changed.
func (s Step) lookAgain(ctx context.Context, server Server) (leadership.Revision, error) {
	now, deleted, err := Find(ctx, server, s.Election)
	switch {
	case err != nil:
		return 0, err
	case deleted && s.Action == Delete: // by another caller
		return now.Revision, nil
	case deleted && s.Action == Restore: // its revision rose: it was restored, and deleted again
		return 0, conflict(s, "was restored and deleted again")
	case deleted:
		return 0, conflict(s, "was deleted")
	case s.Action == Create:
		return 0, conflict(s, "was created")
	case s.Action == Restore:
		return 0, conflict(s, "was restored")
	case len(diff(&s.was, &now.Config)) > 0:
		return 0, conflict(s, "was configured")
	}
	return now.Revision, nil
}

// Find reads an election, also a deleted one. One that was never seen has revision 0.
func Find(ctx context.Context, server Server, e leadership.Election) (l leadership.Lease, deleted bool, err error) {
	l, err = server.Get(ctx, e)
	if refusal, ok := errors.AsType[*leadership.Error](err); ok && refusal.Code == leadership.NotFound {
		if refusal.Lease != nil && refusal.Lease.Deleted {
			return *refusal.Lease, true, nil
		}
		return leadership.Lease{Election: e}, false, nil
	}
	return l, false, err
}

func under(prefixes []string, e leadership.Election) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(string(e), p) })
}
