package leadership

import (
	"cmp"
	"errors"
	"time"
)

// Command is a change of one election, as data. Clients and API handlers pass it on, and Service.Do
// carries it out. Its methods are pure. The commands are the structs of this package that implement
// it, not pointers to them.
type Command interface {
	// Name is the verb's name, as in the API: "stepDown".
	Name() string
	// Target returns the election that the command changes, and what an access check needs to know.
	Target() Target
	// Validate returns an InvalidArgument error unless the command itself is valid.
	Validate() error
}

// Target is the subject of a command.
type Target struct {
	Election  Election
	Candidate CandidateID // the candidate that gives the command; "" for an operator's
	// Token is the token that the caller acts under. A release has none: its caller has stopped.
	Token  Token
	Reason string // in the caller's words
}

// Target returns the target of a candidate that does not act as the leader.
func (r LeaseRequest) Target() Target {
	return Target{Election: r.Election, Candidate: r.CandidateID}
}

// acting returns the target of a leader.
func (r LeaseRequest) acting() Target {
	return Target{Election: r.Election, Candidate: r.CandidateID, Token: r.Token}
}

// fields returns the InvalidArgument error for field, or nil if err is nil.
func fields(field string, err error) error {
	if err != nil {
		return Invalid(field, err)
	}
	return nil
}

// Release ends the caller's lease, so that the next candidate need not wait. It is idempotent: it
// does nothing if the caller's lease has already ended, whichever candidate leads now. A lease that
// has run out without a record of it is recorded as expired. A lease that continues in a new epoch
// may be released under its earlier token. A lease that its leader has yielded is left to the
// successor.
//
// A release shortly before an end for want of progress or of an approval has the consequence of
// that end: a cooldown, or the wait for an approval. Otherwise leaders that obey their deadlines
// would be granted again at once.
//
// A caller that has sent a release must not acquire with the same key before the release was
// answered: see the package's "Identity".
//
// With an Outcome the event says how the work has ended, and a failed one counts for SeriesPolicy.
//
// Error: LeaseLost, if the caller cannot have been granted the token, because it is that of another
// candidate's live lease, or a future one.
type Release struct {
	LeaseRequest
	Outcome Outcome // "" if the caller does not say
	Note    string  // with an outcome, for people: at most MaxReasonBytes bytes in one line
	// IfHeartbeat, if not zero, refuses the release with RevisionMismatch unless it is the lease's
	// LastHeartbeat. It is for an API whose callers share a key, and is not sent over HTTP.
	IfHeartbeat time.Time
}

func (Release) Name() string { return "release" }

func (c Release) Validate() error {
	err := cmp.Or(c.LeaseRequest.Validate(), fields("outcome", c.Outcome.Validate()))
	if err != nil || c.Note == "" {
		return err
	}
	if c.Outcome == "" {
		return Invalid("note", errors.New("a note says more about an outcome; send outcome, too, or step down with a reason"))
	}
	return validateWordAs("note", "-", c.Note)
}

// Withdraw removes the bid of a candidate that has left the line, and its challenge: then the
// leader goes on, and an event says so. It writes nothing if there is neither. Only the instance in
// whose line the candidate stood may call it; it does nothing if the candidate has asked through
// another instance since.
type Withdraw struct {
	Election    Election
	CandidateID CandidateID
	Instance    uint32
}

// Name implements Command. No API has it.
func (Withdraw) Name() string { return "withdraw" }

func (w Withdraw) Target() Target { return Target{Election: w.Election, Candidate: w.CandidateID} }

func (w Withdraw) Validate() error { return validateNames(w.Election, w.CandidateID) }
