package wire

import (
	"net/url"
	"time"

	"regent/leadership"
)

// Body is the document of a command. Row.Body makes an empty one.
type Body interface {
	// Command returns the command for the election. at is the revision that its caller has decided
	// on; 0 for none.
	Command(e leadership.Election, at leadership.Revision) (leadership.Command, error)
}

// Sent is a command as a request of its verb.
type Sent struct {
	Body  any // nil for none
	Query url.Values
	At    leadership.Revision // the condition, if the verb takes one; 0 for none
}

// Encode turns a command into a request. It returns an error for a type that no verb has, such as a
// pointer.
func Encode(c leadership.Command) (s Sent, err error) {
	switch c := c.(type) {
	case leadership.Release:
		s.Body = ReleaseRequest{NewLeaseRequest(c.LeaseRequest), c.Outcome, c.Note}
	case leadership.StepDown:
		s.Body = StepDownRequest{NewHolder(c.LeaseRequest), c.Reason, Duration(c.For)}
	case leadership.RequestApproval:
		s.Body = ApprovalNote{NewHolder(c.LeaseRequest), c.Note, c.NewEpoch}
	case leadership.HandOver:
		s.Body = HandOverRequest{NewHolder(c.LeaseRequest), optional(c.To), optional(Duration(c.Within)), optional(c.Reason)}
	case leadership.SayReady:
		s.Body = NewHolder(c.LeaseRequest)
	case leadership.SayServing:
		s.Body = NewHolder(c.LeaseRequest)
	case leadership.Yield:
		s.Body = NewHolder(c.LeaseRequest)
	case leadership.Configure:
		s.Body, s.At = NewConfigureRequest(c.Config), c.IfRevision
	case leadership.Delete:
		s.At = c.IfRevision
		if c.Force {
			s.Query = url.Values{"force": {"true"}}
		}
	case leadership.Unlock:
		s.Body = UnlockRequest{c.Reason, c.Acknowledge, c.Actor}
	case leadership.Order:
		s.Body, s.At = newOrderRequest(c), c.IfRevision
	case leadership.Judge:
		s.Body, s.At = JudgeRequest{c.Token, c.Verdict, c.Evidence, c.Actor}, c.IfRevision
	default:
		return s, malformed("", "a %T cannot be sent", c)
	}
	return s, nil
}

// Holder is the body of a call that names a lease and nothing else. A successor that is ready names
// itself, and the token of the leader.
type Holder struct {
	CandidateID  leadership.CandidateID `json:"candidateId"`
	Key          string                 `json:"key"`
	FencingToken leadership.Token       `json:"fencingToken"`
}

// NewHolder writes a request.
func NewHolder(r leadership.LeaseRequest) Holder { return Holder{r.CandidateID, r.Key.Text(), r.Token} }

// Leadership reads a request about the election.
func (w Holder) Leadership(e leadership.Election) (leadership.LeaseRequest, error) {
	return LeaseRequest{CandidateID: w.CandidateID, Key: w.Key, FencingToken: w.FencingToken}.Leadership(e)
}

// ReleaseRequest is the body of a release.
type ReleaseRequest struct {
	LeaseRequest
	Outcome leadership.Outcome `json:"outcome,omitzero"`
	Note    string             `json:"note,omitzero"`
}

// Command implements Body.
func (w *ReleaseRequest) Command(e leadership.Election, _ leadership.Revision) (leadership.Command, error) {
	r, err := w.Leadership(e)
	if err == nil && len(r.Report) > 0 {
		err = malformed("report", "a release takes no report; send it with a renewal before, or leave it out")
	}
	if err == nil && r.Statement {
		err = malformed("statement", "a release has no statement; leave it out")
	}
	return leadership.Release{LeaseRequest: r, Outcome: w.Outcome, Note: w.Note}, err
}

// StepDownRequest is the body of a step-down, a release with a reason.
type StepDownRequest struct {
	Holder
	Reason string   `json:"reason"`
	For    Duration `json:"for,omitzero"`
}

// Command implements Body.
func (w *StepDownRequest) Command(e leadership.Election, _ leadership.Revision) (leadership.Command, error) {
	r, err := w.Leadership(e)
	return leadership.StepDown{LeaseRequest: r, Reason: w.Reason, For: time.Duration(w.For)}, err
}

// ApprovalNote is the body of a leader's request for an approval.
type ApprovalNote struct {
	Holder
	Note     string `json:"note"`
	NewEpoch bool   `json:"newEpoch,omitzero"`
}

// Command implements Body.
func (w *ApprovalNote) Command(e leadership.Election, _ leadership.Revision) (leadership.Command, error) {
	r, err := w.Leadership(e)
	return leadership.RequestApproval{LeaseRequest: r, Note: w.Note, NewEpoch: w.NewEpoch}, err
}

// HandOverRequest is the body that names a successor.
type HandOverRequest struct {
	Holder
	To     *leadership.CandidateID `json:"to,omitzero"`
	Within *Duration               `json:"within,omitzero"`
	Reason *string                 `json:"reason,omitzero"`
}

// Command implements Body.
func (w *HandOverRequest) Command(e leadership.Election, _ leadership.Revision) (leadership.Command, error) {
	switch {
	case isEmpty(w.To):
		return nil, malformed("/to", "to is empty; name the successor, or leave it out for the best candidate that waits")
	case isEmpty(w.Within):
		return nil, malformed("/within", "within is from %v to %v, not 0s; leave it out for %v", Duration(leadership.MinWithin), Duration(leadership.MaxWithin), Duration(leadership.DefaultWithin))
	case isEmpty(w.Reason):
		return nil, malformed("/reason", "reason is empty; say why, or leave it out")
	}
	r, err := w.Leadership(e)
	return leadership.HandOver{LeaseRequest: r, To: given(w.To), Within: time.Duration(given(w.Within)), Reason: given(w.Reason)}, err
}

// holding is the body of a command that names a lease and nothing else.
type holding[C interface {
	~struct{ leadership.LeaseRequest }
	leadership.Command
}] struct{ Holder }

// Command implements Body.
func (w *holding[C]) Command(e leadership.Election, _ leadership.Revision) (leadership.Command, error) {
	r, err := w.Leadership(e)
	return C{r}, err
}

// Command implements Body.
func (w *ConfigureRequest) Command(e leadership.Election, at leadership.Revision) (leadership.Command, error) {
	config, err := w.Leadership()
	return leadership.Configure{Election: e, Config: config, IfRevision: at}, err
}

// UnlockRequest is the body of an unlock.
type UnlockRequest struct {
	Reason      string `json:"reason"`
	Acknowledge string `json:"acknowledge,omitzero"`
	Actor       string `json:"actor,omitzero"` // only where callers are not verified
}

// Command implements Body.
func (w *UnlockRequest) Command(e leadership.Election, _ leadership.Revision) (leadership.Command, error) {
	return leadership.Unlock{Election: e, Reason: w.Reason, Acknowledge: w.Acknowledge, Actor: w.Actor}, nil
}

// JudgeRequest is the body of a verdict.
type JudgeRequest struct {
	FencingToken leadership.Token   `json:"fencingToken"`
	Verdict      leadership.Verdict `json:"verdict"`
	Evidence     string             `json:"evidence"`
	Actor        string             `json:"actor,omitzero"` // as in OrderRequest
}

// Command implements Body.
func (w *JudgeRequest) Command(e leadership.Election, at leadership.Revision) (leadership.Command, error) {
	return leadership.Judge{Election: e, Token: w.FencingToken, Verdict: w.Verdict, Evidence: w.Evidence, Actor: w.Actor, IfRevision: at}, nil
}
