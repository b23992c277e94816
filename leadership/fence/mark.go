package fence

import (
	"fmt"

	"regent/leadership"
)

// Mark is the newest leader that has written to a resource. The zero Mark belongs to a resource
// that no leader has written to.
type Mark struct {
	Election leadership.Election // the election that guards the resource
	Token    leadership.Token    // the highest that was admitted; 0 for none
}

// Of returns the mark of a write by the holder of the lease, such as a *client.Lease.
func Of(lease interface {
	Election() leadership.Election
	Token() leadership.Token
},
) Mark {
	return Mark{Election: lease.Election(), Token: lease.Token()}
}

// Admit returns the mark after a write by the leader named by w, or an error if the write must not
// be made; then the mark stays as it is. The errors are *leadership.Error:
//
//   - TokenStale: a later leader has written. Unless a renewal brings a newer token (a new epoch),
//     the leader of w must stop acting as leader.
//   - InvalidArgument: w is not a valid mark, or is of another election, whose tokens cannot be
//     compared.
//   - RecordCorrupt: m is not a valid mark, so the last writer is unknown.
//
// A token is admitted any number of times: a leader makes many writes.
func (m Mark) Admit(w Mark) (Mark, error) {
	if err := w.validate(); err != nil {
		return m, err
	}
	if m == (Mark{}) {
		return w, nil
	}
	if err := m.validate(); err != nil {
		return m, &leadership.Error{Code: leadership.RecordCorrupt, Detail: fmt.Sprintf("the stored mark of the resource is invalid (%v); an operator must repair it", err)}
	}
	switch {
	case m.Election != w.Election:
		return m, &leadership.Error{Code: leadership.InvalidArgument, Field: "election", Detail: fmt.Sprintf(
			"the resource is guarded by election %q, but the token is of election %q; tokens of two elections cannot be compared", m.Election, w.Election)}
	case w.Token < m.Token:
		return m, &leadership.Error{
			Code: leadership.TokenStale, Lease: &leadership.Lease{Election: m.Election, Token: m.Token},
			Detail: fmt.Sprintf("token %d of election %q is stale: %d has written; unless a renewal brings a newer token, stop acting as leader", w.Token, w.Election, m.Token),
		}
	}
	return w, nil
}

// validate returns an error if w does not name a leader.
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
