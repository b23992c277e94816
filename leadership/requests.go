package leadership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"regent/leadership/internal/form"
)

// AcquireRequest asks to lead an election.
type AcquireRequest struct {
	Election    Election
	CandidateID CandidateID
	// Key is the secret of this incarnation; nil lets the service choose one. A caller that wants
	// to repeat the call after a lost reply should choose its own key: a key that the service chose
	// is lost with the reply, and its lease has to run out.
	Key           *Key
	LeaseDuration time.Duration // 1 s to 24 h in whole milliseconds; 0: as the election is configured
	Metadata      []byte        // see ParseMetadata
	Note          string        // for people, while the lease lasts: one line of at most 256 bytes
	// Wait is how long to stand in line while another candidate leads: 0 to MaxWait. A Service
	// alone has no line and answers at once; an Instance has one.
	Wait time.Duration
	// Candidacy counts where the election's policy asks for it.
	Candidacy
	// Via names a lease that the candidate holds in another election, for this one to stand on.
	// Zero: none.
	Via Via
	// Inherit also asks for the last checkpoint: see Ledger. A Service alone ignores it.
	Inherit bool
	// Statement asks for a signed statement; see Lease. A Service ignores it.
	Statement bool
	// Restore, if it is not zero, is the revision at which the election was deleted: the grant
	// brings the election back, as Configure with a zero Config does. The caller needs the right to
	// configure, and Wait must be 0.
	Restore Revision
	// InLine is set by the instance in whose line the candidate stands.
	InLine InLine
}

// InLine has the fields that an instance adds to the call of a candidate that stands in its line.
type InLine struct {
	// Instance is a random number that identifies the instance, or 0. A candidate that has come
	// back through another instance is not withdrawn by the former one.
	Instance uint32
	// Writes tells the store that the call will most likely write: see Expect.
	Writes bool
	Waited time.Duration // since the candidate began to wait
	// Withdraw is a candidate of the same line that has bid and has left since; or empty.
	Withdraw CandidateID
	// Present reports whether the instance has heard of the member lately; nil: of none. The
	// service asks it before the rule decides, and never within a transaction.
	Present func(CandidateID) bool
	// Quorum is the quorum policy that the instance last saw, so that the service need not read the
	// election to know whose presence to ask for.
	Quorum QuorumPolicy
	// Principal is the principal as which the candidate calls: an order may bar a principal
	// whatever candidate id it uses.
	Principal string
	// Halts are the halts that the instance knows of.
	Halts Overrides
	// Seats knows the seats of an election that has some. nil: the service reads them.
	Seats *Seating
	// Recheck is called before each attempt of a waiting candidate, whose rights may have changed
	// since. An error refuses the attempt. nil: no check.
	Recheck func() error
}

// Standby is a candidate that waits in line for as long.
type Standby struct {
	CandidateID CandidateID
	Candidacy
	Waited time.Duration
}

// Seating knows the seats of elections. It is never asked within a transaction.
type Seating struct {
	// Known returns the seats of the election, except those that cannot be granted. The error is
	// why others are missing.
	Known func(ctx context.Context, whole Lease) ([]Seat, error)
	// Refused is called with the store's refusal to grant a seat.
	Refused func(*Error)
	// Along are the best of the same line behind the candidate, one for each further seat that is
	// free: they bid with it.
	Along []Standby
}

// MaxWait is how long a candidate may stand in line, or a reader wait for news, in one call. To
// wait for longer, ask again.
const MaxWait = time.Minute

// Validate returns an InvalidArgument error unless the request is valid.
func (r AcquireRequest) Validate() error {
	_, err := r.Parse()
	return err
}

// Parse is Validate that also returns the metadata.
func (r AcquireRequest) Parse() (Metadata, error) {
	err := cmp.Or(
		validateNames(r.Election, r.CandidateID),
		refuseReserved(r.Election),
		fields(validateBounds(bounded{"leaseDuration", r.LeaseDuration, LeaseBounds})),
	)
	if err != nil {
		return "", err
	}
	if r.Wait < 0 || r.Wait > MaxWait {
		return "", Invalid("wait", fmt.Errorf("wait is from 0s to %s, not %s; to wait for longer, ask again", form.Spoken(MaxWait), form.Spoken(r.Wait)))
	}
	if r.Restore != 0 && r.Wait > 0 {
		return "", Invalid("wait", errors.New("no candidate waits for a deleted election; ask without wait"))
	}
	metadata, err := ParseMetadata(r.Metadata)
	if err != nil {
		return "", Invalid("metadata", err)
	}
	err = cmp.Or(
		fields("note", form.Line("note", r.Note)),
		fields("key", r.Key.validate()),
		fields(r.Candidacy.validate()),
		fields(r.Via.validate()),
	)
	if err != nil {
		return "", err
	}
	return metadata, nil
}

// Grant is a lease as its leader gets it.
type Grant struct {
	Lease
	Key Key // of the caller, or chosen by the service
	// Waited is how long the request stood in line before the store was asked for this lease. A
	// leader may count its deadline from the moment it sent the request plus Waited (×0.998): the
	// lease was granted no earlier. See Deadline.
	Waited time.Duration
	// Inherited is the last leader's checkpoint, if the request asked to inherit and there is one.
	Inherited *Inheritance
	// InDoubt are the effects that earlier leaders have not finished, if the request asked to
	// inherit.
	InDoubt []Effect
	// Proposals are the open proposals, if the request asked to inherit.
	Proposals []Proposal
}

// ReadRequest asks for an election as it is, or as it was a moment ago.
type ReadRequest struct {
	Election Election
	Strong   bool     // ask the store
	Known    Revision // the newest that the reader has seen: the answer is not older. 0: none
}

// WatchRequest asks to follow an election.
type WatchRequest struct {
	Election Election
	Resume   bool     // continue after the revision After; else begin with the election as it is
	After    Revision // a past revision of the election, or 0
	// Member, if not empty, counts as a follower of the election while the watch is open: it
	// follows the token of the last event that it was sent.
	Member CandidateID
}

// Reading is an election and how old it may be.
type Reading struct {
	Lease
	Age   time.Duration // since the store was asked; 0 for a strong read
	Bound time.Duration // the most that Age can be; 0 for a strong read
}

// LeaseRequest names a lease that the caller holds, in a renewal or in a command of the leader.
type LeaseRequest struct {
	Election    Election
	CandidateID CandidateID
	Key         Key
	// KeyHash replaces Key where a program that knows only the hash runs a rule. A Service requires
	// the Key.
	KeyHash KeyHash
	Token   Token
	Ticket  Ticket // from the answer to the last heartbeat, or empty; only renewals use it
	// Statement asks for a signed statement with the renewal, as AcquireRequest does.
	Statement bool
	// Report, in a renewal, is the leader's account of its work: see ParseReport. May be empty.
	Report []byte
}

// Validate returns an InvalidArgument error unless the request is valid.
func (r LeaseRequest) Validate() error {
	_, err := r.Parse()
	return err
}

// Parse is Validate that also returns the report.
func (r LeaseRequest) Parse() (ReportText, error) {
	err := cmp.Or(
		validateNames(r.Election, r.CandidateID),
		fields("key", r.Key.validate()),
		fields("fencingToken", r.Token.Validate()),
		fields("ticket", r.Ticket.Validate()),
	)
	if err != nil {
		return "", err
	}
	report, err := ParseReport(r.Report)
	if err != nil {
		return "", Invalid("report", err)
	}
	return report, nil
}

// TokenCheck asks whether a token is that of the present leader.
type TokenCheck struct {
	Election Election
	Token    Token
	// Write says that the caller is going to write: an Instance then also refuses with ReadOnly. A
	// Service alone knows no members and cannot.
	Write bool
}

// Validate returns an InvalidArgument error unless the question is valid.
func (r TokenCheck) Validate() error {
	return cmp.Or(fields("election", r.Election.Validate()), fields("fencingToken", r.Token.Validate()))
}

// validate refuses the zero Key: its caller forgot to draw one. nil is valid: no key.
func (k *Key) validate() error {
	if k != nil && *k == (Key{}) {
		return errors.New("a key of zeroes only is no secret; draw 32 random bytes")
	}
	return nil
}

// Validate returns an error unless each part is within its bounds.
func (t Token) Validate() error {
	if t < 1 || t > MaxToken {
		return fmt.Errorf("a fencing token is an integer from 1 to %d, not %d", MaxToken, t)
	}
	return nil
}

// ExplainRequest asks why a candidate does not lead.
type ExplainRequest struct {
	Election    Election
	CandidateID CandidateID
	Halts       Overrides // as in InLine
}

// Limits of pages.
const (
	DefaultPageSize = 100
	MaxPageSize     = 1000
)

// ListRequest asks for a page of elections.
type ListRequest struct {
	Prefix string   // of the names; "" for all
	After  Election // the last name of the page before; "" for the first page
	Limit  int      // 1 to MaxPageSize; 0 for DefaultPageSize
}

// ValidatePrefix returns an InvalidArgument error unless a name can begin with the prefix.
func ValidatePrefix(prefix string) error { return fields("prefix", validatePrefix(prefix)) }

// Validate returns an InvalidArgument error unless the request is valid.
func (r ListRequest) Validate() error {
	if err := ValidatePrefix(r.Prefix); err != nil {
		return err
	}
	if r.After != "" {
		if err := r.After.Validate(); err != nil {
			return Invalid("pageToken", err)
		}
	}
	return validateLimit("pageSize", r.Limit)
}

// validateLimit accepts 0, for DefaultPageSize.
func validateLimit(field string, limit int) error {
	if limit < 0 || limit > MaxPageSize {
		return Invalid(field, fmt.Errorf("%s is from 1 to %d, not %d", field, MaxPageSize, limit))
	}
	return nil
}

// Page is a part of the list of elections. Elections whose record cannot be trusted or needs a
// newer program are not in it.
type Page struct {
	Leases []Lease  // may be fewer than asked for, even none, though more follow
	Next   Election // After of the next page; "" if this is the last
}

// EventsRequest asks for a part of an election's history.
type EventsRequest struct {
	Election Election
	After    Revision // events with a greater revision; 0 for all
	Limit    int      // 1 to MaxPageSize; 0 for DefaultPageSize
}

// Validate returns an InvalidArgument error unless the request is valid.
func (r EventsRequest) Validate() error {
	if err := r.Election.Validate(); err != nil {
		return Invalid("election", err)
	}
	if r.After < 0 {
		return Invalid("after", fmt.Errorf("after is a revision, 0 or more, not %d", r.After))
	}
	return validateLimit("limit", r.Limit)
}

// MaxRecent is how many events of all elections are read at once. A reader that is further behind
// lists all elections instead.
const MaxRecent = 10_000

// Result is the answer to one part of a batch: a lease or an error.
type Result struct {
	Lease Lease
	Err   error
}

func validateNames(e Election, c CandidateID) error {
	return cmp.Or(fields("election", e.Validate()), fields("candidateId", c.Validate()))
}

func validateCondition(r Revision) error {
	if r < 0 {
		return Invalid("If-Match", errors.New("the condition is a revision"))
	}
	return nil
}

// ValidateBatch checks the size of a batch and that it names no election twice.
func ValidateBatch(field string, n int, election func(int) Election) error {
	if n < 1 || n > MaxBatch {
		return Invalid(field, fmt.Errorf("a batch has from 1 to %d elections, this one has %d", MaxBatch, n))
	}
	seen := make(map[Election]bool, n)
	for i := range n {
		if seen[election(i)] {
			return Invalid(field, fmt.Errorf("election %s stands in the batch twice", form.Shown(string(election(i)))))
		}
		seen[election(i)] = true
	}
	return nil
}

// MaxBatch is how many elections one batch may have. Firestore takes 500 writes in one request.
const MaxBatch = 500
