package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
)

// maxWait is the longest wait of a call. minKeep, maxKeep and defaultKeep are for keep: how long an
// instance renews a lease after the last call with its handle.
const (
	maxWait     = 5 * time.Minute
	minKeep     = 10 * time.Second
	maxKeep     = time.Hour
	defaultKeep = 2 * time.Minute
)

type leadInput struct {
	Election      leadership.Election    `json:"election"`
	CandidateID   leadership.CandidateID `json:"candidateId,omitzero"`
	LeaseDuration *wire.Duration         `json:"leaseDuration,omitzero"`
	Wait          wire.Duration          `json:"wait,omitzero"`
	Keep          *wire.Duration         `json:"keep,omitzero"`
	Metadata      jsontext.Value         `json:"metadata,omitzero"`
	Priority      int64                  `json:"priority,omitzero"`
	Capabilities  []string               `json:"capabilities,omitzero"`
	Inherit       bool                   `json:"inherit,omitzero"`
}

type leadOutput struct {
	Handle string `json:"handle"`
	standing
	LeaseDuration wire.Duration           `json:"leaseDuration"`
	Keep          wire.Duration           `json:"keep,omitzero"`
	Inherited     *leadership.Inheritance `json:"inherited,omitzero"`
	InDoubt       []leadership.Effect     `json:"inDoubt,omitzero"`
	Open          []leadership.Proposal   `json:"open,omitzero"`
}

type standing struct {
	Leading      bool                   `json:"leading"`
	Election     leadership.Election    `json:"election"`
	CandidateID  leadership.CandidateID `json:"candidateId"`
	FencingToken leadership.Token       `json:"fencingToken"`
	LeadsForMs   int64                  `json:"leadsForMs"`
	EndsBecause  leadership.EndReason   `json:"endsBecause,omitzero"`
	EndsInMs     int64                  `json:"endsInMs,omitzero"`
}

// lead campaigns. It returns a handle, or leaves no lease behind.
func (d *desk) lead(ctx context.Context, in leadInput) (leadOutput, error) {
	if err := d.checkLead(&in); err != nil {
		return leadOutput{}, err
	}
	held, handle, done, err := d.terms.reserve(ctx, in)
	switch {
	case err != nil:
		return leadOutput{}, err
	case held != nil:
		return held.led(handle), nil
	}
	t, err := d.campaign(ctx, in)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_, _ = done(nil)
	} else if handle, err = done(t); err == nil {
		return t.led(handle), nil
	}
	return leadOutput{}, errors.Join(err, t.release(ctx))
}

// checkLead refuses invalid input that the server would not get to see.
func (d *desk) checkLead(in *leadInput) error {
	if err := in.Election.Validate(); err != nil {
		return invalid("election", "%v", err)
	}
	if err := checkWait(in.Wait, 0); err != nil {
		return err
	}
	if in.LeaseDuration == nil {
		in.LeaseDuration = new(wire.Duration(0))
	} else if d := time.Duration(*in.LeaseDuration); d < leadership.MinLeaseDuration || d > leadership.MaxLeaseDuration {
		return invalid("leaseDuration", "leaseDuration is %v, not %v; leave it out for what the election is configured to", leadership.LeaseBounds, d)
	}
	switch {
	case in.Keep == nil && d.shared:
		in.Keep = new(wire.Duration(defaultKeep))
	case in.Keep == nil:
		in.Keep = new(wire.Duration(0)) // until the session ends
	case !d.shared:
		return invalid("keep", "keep is for a server over HTTP; this process leads until the session ends, so leave it out")
	}
	if keep := time.Duration(*in.Keep); d.shared && (keep < minKeep || keep > maxKeep) {
		return invalid("keep", "keep is from %v to %v, not %v; call leading at least so often", minKeep, maxKeep, keep)
	}
	return nil
}

func checkWait(wait wire.Duration, least time.Duration) error {
	if d := time.Duration(wait); d < least || d > maxWait {
		return invalid("wait", "wait is from %v to %v, not %v; to wait for longer, call again", least, maxWait, d)
	}
	return nil
}

func (d *desk) campaign(ctx context.Context, in leadInput) (*term, error) {
	t := &term{keep: time.Duration(*in.Keep)}
	c, err := d.connect(client.Config{OnNotice: t.note, Candidate: client.Candidate{
		ID: in.CandidateID, LeaseDuration: time.Duration(*in.LeaseDuration), Metadata: in.Metadata,
		Priority: in.Priority, Capabilities: in.Capabilities, Inherit: in.Inherit,
	}})
	if err != nil {
		return nil, err
	}
	if in.Wait == 0 {
		within, cancel := context.WithTimeout(ctx, answerTime)
		defer cancel()
		t.lease, err = c.TryAcquire(within, in.Election)
		return t, err
	}
	within, cancel := context.WithTimeout(ctx, time.Duration(in.Wait))
	defer cancel()
	t.lease, err = c.Campaign(within, in.Election)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && codeOf(err) == leadership.StoreUnavailable {
		err = d.stillWaiting(ctx, in, err)
	}
	return t, err
}

// stillWaiting returns why a campaign was not granted the lease in its wait. waited only says that
// the time is over.
func (d *desk) stillWaiting(ctx context.Context, in leadInput, waited error) error {
	lease, err := d.calls.Get(ctx, in.Election)
	switch {
	case err != nil && !errors.Is(err, leadership.NotFound):
		return errors.Join(waited, err)
	case err != nil || lease.State != leadership.Held:
		return fmt.Errorf("%w: the wait of %v is over, and no lease was granted; why_not says what stands against it", leadership.LeaseHeld, in.Wait)
	}
	return &leadership.Error{Code: leadership.LeaseHeld, Lease: &lease, Detail: fmt.Sprintf(
		"the wait of %v is over; %q leads election %q with fencing token %d, and its lease ends in %v unless it renews",
		in.Wait, lease.LeaderID, in.Election, lease.Token, lease.ExpiresIn.Round(time.Millisecond))}
}

type handled struct {
	Handle string `json:"handle"`
}

type leadingOutput struct {
	standing
	Notices []notice `json:"notices"`
	Why     string   `json:"why,omitzero"`
}

func (d *desk) leading(ctx context.Context, in handled) (leadingOutput, error) {
	t, err := d.terms.find(ctx, in.Handle)
	var over *overError
	switch {
	case errors.As(err, &over):
		return leadingOutput{standing: over.standing, Notices: append([]notice{}, over.notices...), Why: refusal(wire.VerbRead, over.err).Error()}, nil
	case err != nil:
		return leadingOutput{}, err
	}
	out := leadingOutput{standing: t.standing(), Notices: t.heard()}
	if !out.Leading {
		out.Why = t.why()
	}
	return out, nil
}

type reportInput struct {
	Handle string `json:"handle"`
	reportFields
}

type reportFields struct {
	Progress     int64          `json:"progress,omitzero"`
	Tasks        int64          `json:"tasks,omitzero"`
	TokensUsed   int64          `json:"tokensUsed,omitzero"`
	Calls        int64          `json:"calls,omitzero"`
	Errors       int64          `json:"errors,omitzero"`
	ETA          string         `json:"eta,omitzero"`
	Health       string         `json:"health,omitzero"`
	Dependencies jsontext.Value `json:"dependencies,omitzero"`
	Custom       jsontext.Value `json:"custom,omitzero"`
}

func (d *desk) report(ctx context.Context, in reportInput) (standing, error) {
	text, err := wire.Marshal(in.reportFields)
	if err != nil {
		return standing{}, err
	}
	report, err := client.ParseReport(text)
	if err != nil {
		return standing{}, invalid("report", "%v", err)
	}
	t, err := d.leader(ctx, in.Handle)
	if err != nil {
		return standing{}, err
	}
	return t.standing(), t.lease.Report(report)
}

// leader returns the lease of a handle, if it is not over.
func (d *desk) leader(ctx context.Context, handle string) (*term, error) {
	t, err := d.terms.find(ctx, handle)
	if err == nil && !t.lease.Valid() {
		err = t.lost("")
	}
	return t, err
}

func (h handled) handle() string { return h.Handle }

// asLeader returns a tool that needs a lease that is not over.
func asLeader[In interface{ handle() string }, Out any](call func(*term, context.Context, In) (Out, error)) func(*desk, context.Context, In) (Out, error) {
	return func(d *desk, ctx context.Context, in In) (out Out, err error) {
		t, err := d.leader(ctx, in.handle())
		if err == nil {
			out, err = call(t, ctx, in)
			err = t.failed(err)
		}
		return out, err
	}
}

type approvalInput struct {
	handled
	Note     string `json:"note"`
	NewEpoch bool   `json:"newEpoch,omitzero"`
}

func (t *term) requestApproval(ctx context.Context, in approvalInput) (doneOutput, error) {
	ask := t.lease.RequestApproval
	if in.NewEpoch {
		ask = t.lease.RequestEpoch
	}
	err := ask(ctx, in.Note)
	return doneOutput{err == nil}, err
}

type stopInput struct {
	Handle  string             `json:"handle"`
	Outcome leadership.Outcome `json:"outcome,omitzero"`
	Reason  string             `json:"reason,omitzero"`
}

type stopOutput struct {
	Stopped bool `json:"stopped"`
}

func (d *desk) stopLeading(ctx context.Context, in stopInput) (stopOutput, error) {
	if strings.ContainsFunc(in.Reason, unicode.IsControl) { // the SDK would drop it and release the lease anyway
		return stopOutput{}, invalid("reason", "a reason is one line of text, without control characters")
	}
	if err := in.Outcome.Validate(); err != nil {
		return stopOutput{}, invalid("outcome", "%v", err)
	}
	end := (*client.Lease).Resign
	switch {
	case in.Outcome != "":
		end = func(l *client.Lease, ctx context.Context) error { return l.Finish(ctx, in.Outcome, in.Reason) }
	case in.Reason != "":
		end = func(l *client.Lease, ctx context.Context) error { return l.StepDown(ctx, in.Reason, 0) }
	}
	err := d.terms.stop(ctx, in.Handle, func(ctx context.Context, l *client.Lease) error { return end(l, ctx) })
	return stopOutput{Stopped: err == nil}, err
}

type checkpointInput struct {
	handled
	Sequence int64          `json:"sequence"`
	Task     string         `json:"task,omitzero"`
	Data     jsontext.Value `json:"data,omitzero"`
	URI      string         `json:"uri,omitzero"`
	SHA256   string         `json:"sha256,omitzero"`
}

type doneOutput struct {
	Done bool `json:"done"`
}

type putOutput struct {
	doneOutput
	Sequence int64 `json:"sequence"`
}

func (t *term) putCheckpoint(ctx context.Context, in checkpointInput) (putOutput, error) {
	switch {
	case in.Sequence < 1: // the client would use the next number
		return putOutput{}, invalid("sequence", "sequence is 1 for your first checkpoint as this leader, and one more for each that follows")
	case (in.Data == nil) == (in.URI == ""):
		return putOutput{}, invalid("data", "send data or, if it is elsewhere, its uri")
	case in.SHA256 != "" && in.URI == "":
		return putOutput{}, invalid("sha256", "sha256 is that of the data at a uri; leave it out")
	}
	p, err := t.lease.PutCheckpoint(ctx, leadership.CheckpointRequest{Sequence: in.Sequence, Task: in.Task, Data: json.RawMessage(in.Data), URI: in.URI, SHA256: in.SHA256})
	return putOutput{doneOutput{err == nil}, p.Sequence}, err
}

type effectInput struct {
	handled
	EffectID leadership.EffectID `json:"effectId"`
}

func (t *term) beginEffect(ctx context.Context, in effectInput) (leadership.Effect, error) {
	return t.lease.BeginEffect(ctx, in.EffectID)
}

type finishInput struct {
	effectInput
	Result jsontext.Value `json:"result,omitzero"`
}

func (t *term) finishEffect(ctx context.Context, in finishInput) (doneOutput, error) {
	var result any
	if in.Result != nil {
		result = in.Result
	}
	err := t.lease.FinishEffect(ctx, in.EffectID, result)
	return doneOutput{err == nil}, err
}

type appendInput struct {
	handled
	After   leadership.Index `json:"after"`
	Entries []newEntry       `json:"entries"`
}

type newEntry struct {
	Type string         `json:"type,omitzero"`
	Data jsontext.Value `json:"data"`
}

type indexOutput struct {
	Index leadership.Index `json:"index"`
}

func (t *term) appendJournal(ctx context.Context, in appendInput) (indexOutput, error) {
	var entries []client.Entry
	for _, e := range in.Entries {
		entries = append(entries, client.Entry{Type: e.Type, Data: e.Data})
	}
	index, err := t.lease.JournalAfter(in.After).Append(ctx, entries...)
	return indexOutput{index}, err
}
