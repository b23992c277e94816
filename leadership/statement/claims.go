package statement

import (
	"errors"
	"fmt"
	"time"

	"regent/leadership"
)

// Claims are the content of a statement. All instants are of the store's clock.
type Claims struct {
	Issuer    string                 `json:"iss,omitzero"` // the server's URL, if it knows that
	Leader    leadership.CandidateID `json:"sub"`
	Principal string                 `json:"principal,omitzero"` // the principal as which the leader calls, if it was verified
	Election  leadership.Election    `json:"election"`
	Of        leadership.Election    `json:"of,omitzero"`   // the election whose seat this is
	Seat      int                    `json:"seat,omitzero"` // its number
	Token     leadership.Token       `json:"fencingToken"`
	IssuedAt  int64                  `json:"iat"` // the store's now, in whole seconds since 1970
	Expires   int64                  `json:"exp"` // the end of the lease, rounded down
}

// claims returns the claims for a lease that was just granted or renewed.
func claims(issuer string, l leadership.Lease, principal string) Claims {
	return Claims{
		Issuer: issuer, Leader: l.LeaderID, Principal: principal, Election: l.Election, Of: l.Whole(), Seat: l.Seat, Token: l.Token,
		IssuedAt: l.ReadAt.Unix(), Expires: l.LeaseExpiration.Unix(),
	}
}

// Until returns the end of the lease, rounded down to a second.
func (c Claims) Until() time.Time { return time.Unix(c.Expires, 0) }

// Want says which lease a statement must be about.
type Want struct {
	Election leadership.Election // "" for any: then look at Claims.Election
	Token    leadership.Token    // 0 for any
}

// MaxAhead is how far the verifier's clock may be behind the store's: a clock that is further
// behind would believe in the lease for too long.
const MaxAhead = 5 * time.Second

// longest is longer than any lease, in seconds.
const longest = int64((leadership.MaxLeaseDuration + time.Minute) / time.Second)

// check returns an error unless a server can have made the claims, they are about want, and the
// lease has not ended.
func (c Claims) check(now time.Time, want Want) error {
	switch {
	case c.Election.Validate() != nil, c.Leader.Validate() != nil, c.Token.Validate() != nil:
		return errors.New("claims: election, sub and fencingToken must name a lease")
	case c.IssuedAt <= 0, c.Expires < c.IssuedAt, c.Expires-c.IssuedAt > longest:
		return errors.New("claims: exp must be after iat, by the length of a lease")
	case !now.Before(c.Until()):
		return fmt.Errorf("expired: the lease has ended at %s", c.Until().UTC().Format(time.RFC3339))
	case time.Unix(c.IssuedAt, 0).Sub(now) > MaxAhead:
		return fmt.Errorf("not yet valid: the clock of this machine is more than %v behind the store's", MaxAhead)
	case want.Election != "" && c.Election != want.Election:
		return fmt.Errorf("election: the statement is about %q", c.Election)
	case want.Token != 0 && c.Token != want.Token:
		return fmt.Errorf("token: the statement is about token %d", c.Token)
	}
	return nil
}
