package rule

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// proposalsHead is the text of the head of an election's proposals, which are the body. The mark
// guards decisions: any caller may propose.
type proposalsHead struct {
	Mark
	Changes int64 `json:"changes,omitempty"`
}

// proposals is the body.
type proposals struct {
	Open    []proposal `json:"open,omitempty"`
	Decided []proposal `json:"decided,omitempty"` // in the order of their decisions
}

// proposal is a proposal as the body has it.
type proposal struct {
	ID        leadership.ProposalID  `json:"id"`
	By        leadership.CandidateID `json:"by"`
	Principal string                 `json:"principal,omitempty"`
	Kind      string                 `json:"kind"`
	Data      json.RawMessage        `json:"data,omitempty"`
	TTLMs     int64                  `json:"ttlMs"`
	At        time.Time              `json:"at,omitzero"` // zero if this head was written with it
	Decision  *decision              `json:"decision,omitempty"`
}

// decision is a decision as the body has it.
type decision struct {
	Verdict  leadership.ProposalVerdict `json:"verdict"`
	Note     string                     `json:"note,omitempty"`
	Token    leadership.Token           `json:"token"`
	LeaderID leadership.CandidateID     `json:"leaderId"`
	At       time.Time                  `json:"at,omitzero"` // zero if this head was written with it
}

// until is when the proposal is not kept any more.
func (p proposal) until() time.Time {
	from := p.At
	if p.Decision != nil {
		from = p.Decision.At
	}
	return from.Add(time.Duration(p.TTLMs) * time.Millisecond)
}

// readProposals reads the proposals of a log, with their times. now is a time of the store, no
// later than the present one: what was to be kept until then is left out.
func (l Log) readProposals(now time.Time) (h proposalsHead, all proposals, err error) {
	if err := l.readHead(&h); err != nil || l.Body == "" {
		return h, all, err
	}
	if err := form.Decode([]byte(l.Body), &all); err != nil {
		return h, all, &leadership.Error{Code: leadership.RecordCorrupt, Detail: fmt.Sprintf("the proposals of election %q cannot be read: %v", l.ID.Election, err)}
	}
	for _, list := range []*[]proposal{&all.Open, &all.Decided} {
		for i := range *list {
			p := &(*list)[i]
			if p.At.IsZero() {
				p.At = l.WrittenAt
			}
			if p.Decision != nil && p.Decision.At.IsZero() {
				p.Decision.At = l.WrittenAt
			}
		}
		*list = slices.DeleteFunc(*list, func(p proposal) bool { return !now.Before(p.until()) })
	}
	return h, all, nil
}

// find returns the proposal, or nil.
func (all *proposals) find(id leadership.ProposalID) *proposal {
	for _, list := range [][]proposal{all.Open, all.Decided} {
		if i := slices.IndexFunc(list, func(p proposal) bool { return p.ID == id }); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

// written is the change of a head.
func (all proposals) written(h proposalsHead) (LogChange, error) {
	h.Changes++
	body, err := form.JSON(all)
	if err != nil {
		return LogChange{}, leadership.Invalid("data", err)
	}
	return LogChange{Text: HeadText(h), Body: string(body)}, nil
}

// Propose adds a proposal. now is as in Proposals.
//
// Errors: InvalidArgument, if the id is that of another proposal; LimitExceeded.
func Propose(l Log, p leadership.ProposeRequest, principal string, now time.Time) (LogChange, error) {
	h, all, err := l.readProposals(now)
	if err != nil {
		return LogChange{}, err
	}
	next := proposal{ID: p.ID, By: p.CandidateID, Principal: principal, Kind: p.Kind, Data: p.Data, TTLMs: p.TTL.Milliseconds()}
	if known := all.find(p.ID); known != nil {
		if known.By != next.By || known.Kind != next.Kind || string(known.Data) != string(next.Data) {
			err = leadership.Invalid("proposalId", fmt.Errorf(
				"election %q has another proposal %q already, of kind %q by %q; take a new id for each proposal", l.ID.Election, p.ID, known.Kind, known.By))
		}
		return LogChange{}, err
	}
	own, ofPrincipal := 0, 0
	for _, o := range all.Open {
		if o.By == next.By {
			own++
		}
		if principal != "" && o.Principal == principal {
			ofPrincipal++
		}
	}
	refuse := func(n int, of string) (LogChange, error) {
		return LogChange{}, &leadership.Error{Code: leadership.LimitExceeded, Detail: fmt.Sprintf(
			"election %q has %d open proposals%s, the most that may be; wait until its leader has decided one, or its ttl is over", l.ID.Election, n, of)}
	}
	switch {
	case own >= leadership.MaxOwnProposals:
		return refuse(own, fmt.Sprintf(" of %q", next.By))
	case ofPrincipal >= leadership.MaxOwnProposals:
		return refuse(ofPrincipal, " of "+principal)
	case len(all.Open) >= leadership.MaxOpenProposals:
		return refuse(len(all.Open), "")
	}
	all.Open = append(all.Open, next)
	return all.written(h)
}

// Decide decides a proposal, and raises the mark to the token of the leader. leads says that its
// lease was verified: now is that moment, as in Proposals.
//
// Errors: TokenStale; LeaseLost; NotFound; InvalidArgument, if it is decided otherwise;
// ErrUnopened, if the lease is not that of the leader.
func Decide(l Log, c Renewal, d leadership.DecideRequest, leads bool, now time.Time) (LogChange, error) {
	h, all, err := l.readProposals(now)
	if err != nil {
		return LogChange{}, err
	}
	if _, _, err := h.raise(l.ID, c); err != nil {
		return LogChange{}, err
	}
	p := all.find(d.ID)
	switch {
	case !leads:
		return LogChange{}, ErrUnopened
	case p == nil:
		return LogChange{}, &leadership.Error{Code: leadership.NotFound, Detail: fmt.Sprintf(
			"election %q has no proposal %q, or has it no longer; read the proposals that are open", l.ID.Election, d.ID)}
	case p.Decision != nil && p.Decision.Verdict == d.Verdict && p.Decision.Note == d.Note: // the reply was lost
		return LogChange{}, nil
	case p.Decision != nil:
		return LogChange{}, leadership.Invalid("verdict", fmt.Errorf("proposal %q of election %q is decided: %s by %q, under fencing token %d; a decision stands",
			d.ID, l.ID.Election, p.Decision.Verdict, p.Decision.LeaderID, p.Decision.Token))
	}
	done := *p
	done.Decision = &decision{Verdict: d.Verdict, Note: d.Note, Token: c.Token, LeaderID: c.CandidateID}
	all.Open = slices.DeleteFunc(all.Open, func(o proposal) bool { return o.ID == d.ID })
	all.Decided = append(all.Decided, done)
	all.Decided = all.Decided[max(len(all.Decided)-leadership.MaxDecidedProposals, 0):]
	return all.written(h)
}

// raisedProposals is RaisedLog for proposals: their times are kept.
func (l Log) raisedProposals(token leadership.Token) (LogChange, error) {
	h, all, err := l.readProposals(time.Time{})
	if err != nil || l.Text == "" || h.Token > token || h.Mark == (Mark{Token: token}) {
		return LogChange{}, err
	}
	h.Mark = Mark{Token: token}
	return all.written(h)
}

// hasProposals reports whether the log is a copy of the other one, which may be in use since.
func (l Log) hasProposals(from Log) (bool, error) {
	var have, of proposalsHead
	err := errors.Join(l.readHead(&have), from.readHead(&of))
	return l.Text != "" && (have.Token > of.Token || have.Token == of.Token && have.Changes >= of.Changes), err
}

// Proposals are what the log has. now is a time that the store has told, no later than the present
// one by any of its clocks; so no proposal ends early.
func (l Log) Proposals(now time.Time) (leadership.Proposals, error) {
	h, all, err := l.readProposals(now)
	show := func(list []proposal) (shown []leadership.Proposal) {
		for _, p := range list {
			one := leadership.Proposal{Election: l.ID.Election, ID: p.ID, CandidateID: p.By, Principal: p.Principal, Kind: p.Kind, Data: p.Data, At: p.At, Until: p.until()}
			if p.Decision != nil {
				one.Decision = new(leadership.Decision(*p.Decision))
			}
			shown = append(shown, one)
		}
		return shown
	}
	return leadership.Proposals{Election: l.ID.Election, Open: show(all.Open), Decided: show(all.Decided), Changes: h.Changes}, err
}
