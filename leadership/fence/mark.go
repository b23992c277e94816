package fence

import (
	"fmt"

	"regent/leadership"
)

// Mark is what a resource remembers of its leaders. The zero Mark is that of a resource that no leader has written to.
type Mark struct {
	Election leadership.Election // that guards the resource
	Token    leadership.Token    // the highest that was admitted; 0 for none
}

// Of is the mark of a write by whoever holds the lease, such as a *client.Lease.
func Of(lease interface {
	Election() leadership.Election
	Token() leadership.Token
},
) Mark {
	return Mark{Election: lease.Election(), Token: lease.Token()}
}

// Admit returns the mark after a write by the leader that w names, or why it must not be made; the mark then stays as it is. The errors are
// *leadership.Error:
//
//   - TokenStale: a later leader has written. Whoever is told this leads no more, and stops.
//   - InvalidArgument: w names no leader, or one of another election, whose tokens say nothing about this one's.
//   - RecordCorrupt: m is no mark, and nobody can tell who has written.
//
// A token is admitted as often as it comes: a leader makes many writes.
func (m Mark) Admit(w Mark) (Mark, error) {
	if err := w.validate(); err != nil {
		return m, err
	}
	if m == (Mark{}) {
		return w, nil
	}
	if err := m.validate(); err != nil {
		return m, &leadership.Error{Code: leadership.RecordCorrupt, Detail: fmt.Sprintf("what is kept as the mark of the resource is none (%v); an operator has to mend it", err)}
	}
	switch {
	case m.Election != w.Election:
		return m, &leadership.Error{Code: leadership.InvalidArgument, Field: "election", Detail: fmt.Sprintf(
			"the resource is guarded by election %q, and this is a token of %q; tokens of two elections cannot be compared", m.Election, w.Election)}
	case w.Token < m.Token:
		return m, &leadership.Error{
			Code: leadership.TokenStale, Lease: &leadership.Lease{Election: m.Election, Token: m.Token},
			Detail: fmt.Sprintf("fencing token %d of election %q is stale, a leader with token %d has written; stop acting as leader", w.Token, w.Election, m.Token),
		}
	}
	return w, nil
}

// validate returns why w names no leader.
func (m Mark) validate() error {
	if err := m.Election.Validate(); err != nil {
		return &leadership.Error{Code: leadership.InvalidArgument, Field: "election", Detail: err.Error()}
	}
	if m.Token < 1 || m.Token > leadership.MaxToken {
		return &leadership.Error{Code: leadership.InvalidArgument, Field: "fencingToken", Detail: fmt.Sprintf(
			"a fencing token is an integer from 1 to %d, not %d", leadership.MaxToken, m.Token)}
	}
	return nil
}
