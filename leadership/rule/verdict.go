package rule

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// verdicts are the verdicts on the present term: digests of principals, separated by spaces.
type verdicts struct {
	Bad  string `json:"bad,omitempty"`
	Good string `json:"good,omitempty"`
}

func (v verdicts) Validate() error {
	if len(strings.Fields(v.Bad)) > leadership.MaxVerdicts || len(strings.Fields(v.Good)) > leadership.MaxVerdicts {
		return errors.New("it has more verdicts than are counted")
	}
	return nil
}

func judge(s Snapshot, c leadership.Judge) (Change, error) {
	r := s.Record
	if !s.Exists() {
		return Change{}, s.RefuseUnseen()
	}
	digest := form.Digest(c.Actor)
	if c.Token == r.Token && r.Standing.Deposed.Token == c.Token && r.LeaderID == "" {
		return Change{}, nil // the term has already ended
	}
	if err := Check(s, c.Token); err != nil {
		return Change{}, err
	}
	bad, good := strings.Fields(r.Standing.Verdicts.Bad), strings.Fields(r.Standing.Verdicts.Good)
	to, from := &bad, &good
	if c.Verdict == leadership.VerdictGood {
		to, from = &good, &bad
	}
	if slices.Contains(*to, digest) {
		return Change{}, nil
	}
	if err := s.require(c.IfRevision); err != nil {
		return Change{}, err
	}
	*from = slices.DeleteFunc(*from, func(d string) bool { return d == digest })
	if *to = append(*to, digest); len(*to) > leadership.MaxVerdicts {
		return Change{}, s.Refuse(leadership.LimitExceeded, "%d principals have given this verdict on the present term of election %q, and more are not counted", leadership.MaxVerdicts, r.Election)
	}
	ch := s.change()
	ch.Record.Standing.Verdicts = verdicts{strings.Join(bad, " "), strings.Join(good, " ")}
	ch.announce(leadership.EventJudged, "")
	ch.explain(c.Evidence, leadership.Detail{Bad: new(len(bad)), Good: new(len(good)), Verdict: c.Verdict})
	ch.Events[0].Actor = c.Actor
	p := r.Policy.Term
	if p.Verdicts == 0 || len(bad) < p.Verdicts {
		return ch, nil
	}
	t := trip{fmt.Sprintf("%d verifiers judged its work bad", len(bad)), leadership.Detail{BadVerdicts: len(bad), Verdicts: p.Verdicts}}
	if p.OnTrip == leadership.TripNotify {
		ch.notify(t)
	} else {
		ch.depose(s, t)
	}
	return ch, nil
}

func stepDown(s Snapshot, c leadership.StepDown) (Change, error) {
	ch, err := leave(s, leadership.Release{LeaseRequest: c.LeaseRequest})
	if err != nil || ch.Empty() || !s.Live() {
		return ch, err
	}
	if ch.Events[len(ch.Events)-1].Reason = c.Reason; c.For == 0 {
		ch.park(s.Now)
		return ch, nil
	}
	since := form.Later(s.Now, 0)
	o := leadership.Override{
		ID: leadership.OverrideID(fmt.Sprintf("%s-%d", leadership.OverrideBan, ch.Record.Revision)), Kind: leadership.OverrideBan, CandidateID: c.CandidateID,
		Actor: string(c.CandidateID), Reason: c.Reason, Since: since, Until: since.Add(c.For),
	}
	overrides := &ch.Record.Standing.Overrides // added to an operator's ban of the candidate, if there is one
	*overrides = leadership.NewOverrides(append(ch.Record.Standing.overrides(s.Now), o))
	detail := detailOf(o)
	detail.EndsBecause = s.Record.yields(s.Now)
	ch.explain(c.Reason, detail)
	if err := limitOverrides(*overrides, s, leadership.MaxOverrides/2, maxOverrideBytes/2); err != nil {
		return Change{}, s.Refuse(leadership.LimitExceeded, "election %q has too many overrides for a candidate to add one of its own; step down without for", s.Record.Election)
	}
	ch.park(s.Now)
	return ch, nil
}

func requestApproval(s Snapshot, c leadership.RequestApproval) (Change, error) {
	r := s.Record
	switch {
	case !s.Leads(leaseOf(c.LeaseRequest)):
		return Change{}, s.RefuseLost(leaseOf(c.LeaseRequest))
	case r.Policy.Term.Approval.Every == 0:
		return Change{}, leadership.Invalid("election", fmt.Errorf("election %q needs no approval; its policy has no approval.every", r.Election))
	case r.Standing.Approval.Asked && (r.Standing.Approval.AskedEpoch || !c.NewEpoch):
		return Change{}, nil
	}
	ch := s.change()
	ch.Record.Standing.Approval.Asked, ch.Record.Standing.Approval.AskedEpoch = true, c.NewEpoch
	ch.announce(leadership.EventApprovalRequested, "")
	ch.explain(c.Note, leadership.Detail{EndsBy: r.Standing.Ends.Approval, NewEpoch: c.NewEpoch}) // EndsBy is zero if the policy is newer than the term
	return ch, nil
}
