package rule

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// proposalsHead is the text of the head of an election's proposals; the body has the proposals. The
// mark guards decisions only: any caller may propose.
type proposalsHead struct {
	Mark
	Changes int64 `json:"changes,omitempty"`
}

// proposals is the body.
type proposals struct {
	Open    []proposal `json:"open,omitempty"`
	Decided []proposal `json:"decided,omitempty"` // in the order of their decisions
	// Past maps the digests of the ids of earlier decided proposals to when their ttl ends, in
	// milliseconds since 1970, so that a copy of their call is not taken for a new proposal.
	Past map[string]int64 `json:"past,omitempty"`
}

// proposal is a proposal as stored in the body. Its At, or its decision's, is zero if it was added
// when this head was written: then the time is that of the head.
type proposal struct {
	leadership.Proposal
	TTLMs int64 `json:"ttlMs"`
}

// until returns when the proposal's ttl ends.
func (p proposal) until() time.Time {
	from := p.At
	if p.Decision != nil {
		from = p.Decision.At
	}
	return from.Add(time.Duration(p.TTLMs) * time.Millisecond)
}

// readProposals reads the proposals of a log, with their times. It leaves out those whose ttl ended
// before now, which must not be later than the store's present time.
func (l Log) readProposals(now time.Time) (h proposalsHead, all proposals, err error) {
	err = errors.Join(l.readHead(&h), l.read(l.Body, &all))
	for _, list := range []*[]proposal{&all.Open, &all.Decided} {
		for i := range *list {
			p := &(*list)[i]
			if p.At.IsZero() {
				p.At = l.WrittenAt.UTC()
			}
			if p.Decision != nil && p.Decision.At.IsZero() {
				p.Decision.At = l.WrittenAt.UTC()
			}
		}
		*list = slices.DeleteFunc(*list, func(p proposal) bool { return !now.Before(p.until()) })
	}
	maps.DeleteFunc(all.Past, func(_ string, until int64) bool { return until <= now.UnixMilli() })
	return h, all, err
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

// written returns the change that writes the proposals.
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
// Errors: InvalidArgument, if the id is that of another proposal; NotFound, if only the id of the
// proposal is still kept; LimitExceeded.
func Propose(l Log, p leadership.ProposeRequest, principal string, now time.Time) (LogChange, error) {
	h, all, err := l.readProposals(now)
	if err != nil {
		return LogChange{}, err
	}
	next := proposal{leadership.Proposal{ID: p.ID, CandidateID: p.CandidateID, Principal: principal, Kind: p.Kind, Data: p.Data}, p.TTL.Milliseconds()}
	if known := all.find(p.ID); known != nil {
		if known.CandidateID != next.CandidateID || known.Kind != next.Kind || string(known.Data) != string(next.Data) {
			err = leadership.Invalid("proposalId", fmt.Errorf(
				"election %q has another proposal %q already, of kind %q by %q; take a new id for each proposal", l.ID.Election, p.ID, known.Kind, known.CandidateID))
		}
		return LogChange{}, err
	}
	if _, ok := all.Past[form.Digest(string(p.ID))]; ok {
		return LogChange{}, &leadership.Error{Code: leadership.NotFound, Detail: fmt.Sprintf(
			"proposal %q of election %q was decided, and is not kept any more: %d others were decided since; if this is another one, take a new id",
			p.ID, l.ID.Election, leadership.MaxDecidedProposals)}
	}
	own, ofPrincipal := 0, 0
	for _, o := range all.Open {
		if o.CandidateID == next.CandidateID {
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
		return refuse(own, fmt.Sprintf(" of %q", next.CandidateID))
	case ofPrincipal >= leadership.MaxOwnProposals:
		return refuse(ofPrincipal, " of "+principal)
	case len(all.Open) >= leadership.MaxOpenProposals:
		return refuse(len(all.Open), "")
	case len(all.Open)+len(all.Decided)+len(all.Past) >= leadership.MaxProposals:
		return LogChange{}, &leadership.Error{Code: leadership.LimitExceeded, Detail: fmt.Sprintf(
			"election %q has had %d proposals that are not over yet, the most that may be; wait until the ttl of some is over, and propose with a shorter ttl",
			l.ID.Election, leadership.MaxProposals)}
	}
	all.Open = append(all.Open, next)
	return all.written(h)
}

// Decide decides a proposal, and raises the mark to the token of the leader. leads says that the
// lease was verified, at now, which is as in Proposals.
//
// Errors: TokenStale; LeaseLost; NotFound; InvalidArgument, if it was decided differently;
// ErrUnopened, if the lease must be verified first.
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
	done.Decision = &leadership.Decision{Verdict: d.Verdict, Note: d.Note, Token: c.Token, LeaderID: c.CandidateID}
	all.Open = slices.DeleteFunc(all.Open, func(o proposal) bool { return o.ID == d.ID })
	all.Decided = append(all.Decided, done)
	for ; len(all.Decided) > leadership.MaxDecidedProposals; all.Decided = all.Decided[1:] {
		first := all.Decided[0]
		if all.Past == nil {
			all.Past = make(map[string]int64)
		}
		all.Past[form.Digest(string(first.ID))] = first.until().UnixMilli() + 1 // not earlier, in spite of rounding
	}
	return all.written(h)
}

// hasProposals reports whether the log is a copy of from, perhaps with later writes.
func (l Log) hasProposals(from Log) (bool, error) {
	var have, of proposalsHead
	err := errors.Join(l.readHead(&have), from.readHead(&of))
	return l.Text != "" && (have.Token > of.Token || have.Token == of.Token && have.Changes >= of.Changes), err
}

// Proposals returns the proposals whose ttl has not ended at now. now must not be later than the
// present by any clock of the store, so that no proposal ends early.
func (l Log) Proposals(now time.Time) (leadership.Proposals, error) {
	h, all, err := l.readProposals(now)
	show := func(list []proposal) (shown []leadership.Proposal) {
		for _, p := range list {
			p.Election, p.Until = l.ID.Election, p.until()
			shown = append(shown, p.Proposal)
		}
		return shown
	}
	return leadership.Proposals{Election: l.ID.Election, Open: show(all.Open), Decided: show(all.Decided), Changes: h.Changes}, err
}
