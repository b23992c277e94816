package leadership

import (
	"cmp"
	"errors"
	"time"
)

// Command is a change of one election that a caller asks for, as data: Service.Do carries it out,
// and each door and client carries it there. Its methods are pure. The commands are the structs of
// this package that have them, and not pointers to these.
type Command interface {
	// Name is the verb's name, as in the API: "stepDown".
	Name() string
	// Target says which election the command is about, and what else a gate has to know.
	Target() Target
	// Validate returns what is wrong with the command itself, with the code InvalidArgument.
	Validate() error
}

// Target is what a command is about.
type Target struct {
	Election  Election
	Candidate CandidateID // of a command that is given as one
	// Token is the one that the caller acts under. A release has none: its caller has stopped.
	Token  Token
	Reason string // in the caller's words
}

// Target is that of a candidate that does not act as the leader.
func (r LeaseRequest) Target() Target {
	return Target{Election: r.Election, Candidate: r.CandidateID}
}

// acting is the target of a leader.
func (r LeaseRequest) acting() Target {
	return Target{Election: r.Election, Candidate: r.CandidateID, Token: r.Token}
}

// fields makes the error of a Validate from the field that is wrong.
func fields(field string, err error) error {
	if err != nil {
		return Invalid(field, err)
	}
	return nil
}

// Release ends the caller's lease, so that the next candidate need not wait. It leaves a lease that
// has ended already as it is, whichever candidate leads now: a second release does what the first
// did. A lease that has run out without a record of it is recorded as expired. A lease that goes on
// in a new epoch may be released under its earlier token. A lease that its leader has yielded is
// left to the successor.
//
// A release shortly before an end for want of progress or of an approval leaves behind what that
// end would: a cooldown, or the wait for an approval. Otherwise leaders that obey their deadlines
// would be granted again at once.
//
// A caller that has sent a release must not acquire with the same key before the release was
// answered: see the package's "Identity".
//
// With an Outcome the event says how the work has ended, and a failed one counts for SeriesPolicy.
//
// Error: LeaseLost, if the caller cannot have been granted the token: it is that of another
// candidate's live lease, or a future one.
type Release struct {
	LeaseRequest
	Outcome Outcome // "" if the caller does not say
	Note    string  // with an outcome, for people: at most MaxReasonBytes bytes in one line
	// IfHeartbeat refuses the release with RevisionMismatch if the lease has another LastHeartbeat;
	// zero: it may have. It is for a door whose callers share a key, and is not sent over HTTP.
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

// Withdraw forgets the bid of a candidate that has gone, and its challenge: the leader goes on,
// with an event. It writes nothing if there is neither. No caller may withdraw another one's: it is
// for the instance in whose line the candidate stood, and does nothing if the candidate has asked
// through another since.
type Withdraw struct {
	Election    Election
	CandidateID CandidateID
	Instance    uint32
}

// Name implements Command. No API has it.
func (Withdraw) Name() string { return "withdraw" }

func (w Withdraw) Target() Target { return Target{Election: w.Election, Candidate: w.CandidateID} }

func (w Withdraw) Validate() error { return validateNames(w.Election, w.CandidateID) }
