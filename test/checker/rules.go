package checker

import (
	"cmp"
	"errors"
	"math"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// decide runs the rule that the call asks for.
func (c Call) decide(s rule.Snapshot) (rule.Change, error) {
	named := rule.Renewal{Election: c.Election, CandidateID: c.Candidate, KeyHash: c.Key, Token: c.Token}
	seen := s.Record.Revision > 0
	switch c.Verb {
	case Acquire:
		if c.Code == leadership.LeaseLost { // a renewal of its own lease, which came too late
			named.Token = s.Record.Token
			return rule.Renew(s, named)
		}
		if c.shared(s.Record) {
			return rule.Change{Record: s.Record}, nil
		}
		return c.acquire(s, rule.AcquireCommand{
			CandidateID: c.Candidate, KeyHash: c.Key, LeaseDuration: c.Lease, Metadata: c.Metadata, Candidacy: c.Candidacy, Parent: c.parent(s),
		})
	case Renew:
		named.Report, named.Parent = c.Report, c.parent(s)
		return rule.Renew(s, named)
	case Release:
		return rule.Apply(s, leadership.Release{LeaseRequest: named.Request(), Outcome: c.Outcome, Note: c.Reason})
	case Configure:
		return rule.Apply(s, leadership.Configure{Config: c.Config, IfRevision: c.If})
	case Delete:
		return rule.Apply(s, leadership.Delete{IfRevision: c.If, Force: c.Force})
	case Unlock:
		if c.Code == leadership.LeaseHeld {
			return rule.Apply(s, leadership.Unlock{})
		}
		return unlock(s, "", "")
	case Order:
		return rule.Apply(s, c.Order)
	case Judge:
		return rule.Apply(s, leadership.Judge{Token: c.Token, Verdict: c.Verdict, Evidence: c.Reason, Actor: c.Actor})
	case StepDown:
		return rule.Apply(s, leadership.StepDown{LeaseRequest: named.Request(), Reason: c.Reason, For: c.For})
	case RequestApproval:
		return rule.Apply(s, leadership.RequestApproval{LeaseRequest: named.Request(), Note: c.Reason})
	case HandOver:
		return rule.Apply(s, leadership.HandOver{LeaseRequest: named.Request(), To: cmp.Or(c.To, c.Chosen), Chosen: c.To == "", Within: cmp.Or(c.Within, leadership.DefaultWithin), Reason: c.Reason})
	case Ready:
		return c.ready(s)
	case Serving:
		return rule.Apply(s, leadership.SayServing{LeaseRequest: named.Request()})
	case Yield:
		return rule.Apply(s, leadership.Yield{LeaseRequest: named.Request()})
	case Delegate: // the child that was counted last exists
		return rule.Delegate(s, rule.DelegateCommand{Renewal: named, Child: c.Child, Limits: c.Limits, Made: s.Record.Standing.Delegated.Last})
	case Check:
		if seen {
			return rule.Change{}, c.check(s)
		}
	case Get:
		if seen && !s.Record.Deleted {
			return rule.Change{}, nil
		}
	}
	return rule.Change{}, leadership.NotFound
}

// shared reports whether the answer is that of another call with the same key, which was granted:
// both were waiting.
func (c Call) shared(r rule.Record) bool {
	a := c.Answer
	return c.Code == "" && a != nil && r.LeaderID == c.Candidate && r.KeyHash.Equal(c.Key) && r.Token == a.Token && r.Revision == a.Revision &&
		r.HeartbeatAt.Equal(r.AcquiredAt) && a.LastHeartbeat.Equal(r.AcquiredAt)
}

// ready runs the rule. Which incarnation of the successor is meant only its instance knows, so that
// another one may be refused that the rule would take.
func (c Call) ready(s rule.Snapshot) (rule.Change, error) {
	ch, err := rule.Apply(s, leadership.SayReady{LeaseRequest: rule.Renewal{CandidateID: c.Candidate, KeyHash: c.Key, Token: c.Token}.Request()})
	if err == nil && c.Code == leadership.LeaseHeld && c.Because == leadership.ReasonIncarnation {
		return rule.Change{}, leadership.LeaseHeld
	}
	return ch, err
}

// check is the rule, and what a service says to a caller that is going to write.
func (c Call) check(s rule.Snapshot) error {
	err := rule.Check(s, c.Token)
	if err == nil && c.Write && s.Record.Standing.NotServing {
		return leadership.NotReady
	}
	return err
}

// parent is the lease that the candidate's stands on, as the service has read it: what the answer
// shows or, where it shows none, as it must have been for this answer.
func (c Call) parent(s rule.Snapshot) rule.ParentLease {
	soon := s.Now.Add(time.Hour)
	p := rule.ParentLease{Parent: leadership.Parent{Peer: c.Via.Peer, Election: c.Via.Election, Token: c.Via.Token, Until: soon}, LeaderID: c.Candidate}
	if of := s.Record.Policy.Delegation.Parent; of != "" {
		p.Parent = leadership.Parent{Election: of, Token: 1, Until: soon}
	}
	switch a := c.Answer; {
	case c.Code == "" && a != nil && a.Parent.Token > 0:
		p.Parent = a.Parent
	case c.Stands.Election != "":
		p.Parent = c.Stands
	case c.Stands.Token > 0 && p.Token > 0: // its end alone is known
		p.Until = c.Stands.Until
	case c.Verb == Renew, p.Token == 0:
		return rule.ParentLease{}
	case c.Code == leadership.NotEligible && p.Token > 0:
		p.Until = s.Now
	case c.Because == leadership.ReasonParent:
		p.LeaderID = ""
	}
	return p
}

// acquire runs the rule for a call. One that was refused has not challenged the leader: a challenge
// is a step by itself.
func (c Call) acquire(s rule.Snapshot, cmd rule.AcquireCommand) (rule.Change, error) {
	granted := c.Code == ""
	ch, err := acquire(s, granted, cmd)
	if err == nil && !granted && len(ch.Events) > 0 && ch.Record.LeaderID != "" && s.Record.Policy.Ballot.Quorum.Electorate != "" {
		return rule.Change{}, leadership.LeaseHeld // its instance may have known of too few members
	}
	return ch, err
}

// acquire runs the rule. Bids, and the members that are present, are not recorded: where there is a
// ballot, a call that was granted is taken for one whose turn had come, and any other for a bid. CH
// checks the choice.
func acquire(s rule.Snapshot, granted bool, cmd rule.AcquireCommand) (rule.Change, error) {
	policy := s.Record.Policy
	ballot := &s.Record.Policy.Ballot
	switch {
	case granted:
		ballot.Window, ballot.Quorum = leadership.NoWindow, leadership.QuorumPolicy{}
	case s.Live():
		ballot.Quorum = leadership.QuorumPolicy{} // or no candidate would be a challenger
	}
	ch, err := rule.Acquire(s, cmd)
	if !ch.Empty() {
		standing := &ch.Record.Standing
		ch.Record.Policy = policy
		standing.Opened, standing.Delay, standing.Bids, standing.Secret = time.Time{}, 0, "", ""
	}
	return ch, err
}

// codeFor is the code that the caller receives for what the rule did. A renewal whose report ends
// the term is refused, though the change was made; without an answer either will do. So is a
// candidate that has bid, or challenged the leader. A check for a write is refused if the instance
// finds too few members, which no rule knows.
func (c Call) codeFor(ch rule.Change, err error) leadership.Code {
	switch {
	case err != nil:
	case c.Verb == Renew && c.Answer != nil && !ch.Empty() && ch.Record.LeaderID == "":
		return leadership.LeaseLost
	case c.Verb == Acquire && !(ch.Record.LeaderID == c.Candidate && ch.Record.KeyHash.Equal(c.Key)):
		return leadership.LeaseHeld
	case c.Verb == Check && c.Code == leadership.ReadOnly:
		return c.Code
	}
	return codeOf(err)
}

// codeOf is the code that a caller receives for a rule's error.
func codeOf(err error) leadership.Code {
	var code leadership.Code
	errors.As(err, &code)
	return code
}

// unasked makes a change that no recorded call asked for: a lease ran out, a late heartbeat was
// taken back, a tick retired the election, the server released a lease whose key it had told no
// one, or the call was not recorded.
func (p *search) unasked(s rule.Snapshot, events []leadership.Event) (rule.Change, error) {
	r, last := s.Record, len(events)-1
	if last > 0 && events[last].Type == leadership.EventParked { // by what ended the term before it
		last--
	}
	switch e := events[last]; e.Type {
	case leadership.EventExpired, leadership.EventDeposed:
		if events[0].Type == leadership.EventJudged {
			return judged(s, events[0])
		}
		if e.RequestID != "" && !s.Live() {
			if r.EndsBecause == leadership.EndsParent && limitOf(e) == "" { // the renewal was to move the end on
				s.Record.EndsBy = s.Record.EndsBy.Add(1)
			}
			return rule.Lapse(s, r.Token, r.HeartbeatAt, r.LeaseEnd())
		}
		return rule.Expire(s)
	case leadership.EventReleased:
		given := leadership.Release{LeaseRequest: rule.Renewal{Election: r.Election, CandidateID: r.LeaderID, KeyHash: r.KeyHash, Token: r.Token}.Request(), Outcome: e.ReadDetail().Outcome}
		if given.Outcome != "" {
			given.Note = e.Reason
		}
		return rule.Apply(s, given)
	case leadership.EventAcquired:
		// no one else has this key: unrecorded leases are told apart by their tokens
		key := leadership.KeyHash{1}
		if s.Live() { // it takes over
			key = r.Standing.Succession.Key
		}
		return acquire(s, true, rule.AcquireCommand{
			CandidateID: e.LeaderID, KeyHash: key, LeaseDuration: p.foreign[e.Token], Candidacy: candidacyOf(e, r.Policy.Ballot),
			Parent: p.foreignParent(s, e),
		})
	case leadership.EventHandingOver, leadership.EventReady, leadership.EventServing, leadership.EventYielded, leadership.EventDelegated:
		if ch, err, ok := handed(s, e); ok {
			return ch, err
		}
		challenger := leadership.Candidacy{Priority: leadership.MaxPriority, Capabilities: union(r.Policy.Ballot.Require, r.Policy.Ballot.Prefer)}
		return acquire(s, false, rule.AcquireCommand{CandidateID: successorOf(e), KeyHash: leadership.KeyHash{1}, Candidacy: challenger, Parent: anyParent(s, successorOf(e))})
	case leadership.EventGoesOn:
		if s.Record.Standing.Challenger != "" { // another of its line may have taken its place, without an event
			s.Record.Standing.Challenger = successorOf(e)
		}
		return rule.Apply(s, leadership.Withdraw{CandidateID: successorOf(e)})
	case leadership.EventConfigured, leadership.EventRecreated:
		return rule.Apply(s, leadership.Configure{Config: p.configAt(e.Revision, r.Policy.Config)})
	case leadership.EventDeleted:
		if strings.HasPrefix(e.Reason, "retired") {
			return rule.Retire(s)
		}
		return rule.Apply(s, leadership.Delete{Force: true})
	case leadership.EventUnlocked:
		return unlock(s, e.Reason, e.Actor)
	case leadership.EventJudged:
		return judged(s, e)
	case leadership.EventApprovalRequested:
		named := rule.Renewal{Election: r.Election, CandidateID: r.LeaderID, KeyHash: r.KeyHash, Token: r.Token}
		return rule.Apply(s, leadership.RequestApproval{LeaseRequest: named.Request(), Note: e.Reason})
	}
	if order, ok := orderOf(events, s.Now); ok {
		return rule.Apply(s, order)
	}
	return rule.Change{}, leadership.NotFound
}

// foreignParent is the lease on which one was granted that no call was told of, or any if no answer
// shows it.
func (p *search) foreignParent(s rule.Snapshot, e leadership.Event) rule.ParentLease {
	if at := p.parentOf(e.Token); at.Token > 0 {
		return rule.ParentLease{Parent: at, LeaderID: e.LeaderID}
	}
	return anyParent(s, e.LeaderID)
}

// anyParent is a lease on which one of the election may stand.
func anyParent(s rule.Snapshot, by leadership.CandidateID) rule.ParentLease {
	of := cmp.Or(s.Record.Policy.Delegation.Parent, leadership.Election(s.Record.Policy.LeadersOf))
	if of == "" {
		return rule.ParentLease{}
	}
	return rule.ParentLease{Parent: leadership.Parent{Election: of, Token: 1, Until: s.Now.Add(time.Hour)}, LeaderID: by}
}

// handed repeats a step of a hand-over, or a delegation, by its event.
func handed(s rule.Snapshot, e leadership.Event) (ch rule.Change, err error, ok bool) {
	r := s.Record
	named := rule.Renewal{Election: r.Election, CandidateID: r.LeaderID, KeyHash: r.KeyHash, Token: r.Token}
	switch {
	case e.Type == leadership.EventReady:
		c := rule.Renewal{CandidateID: readyOf(e), KeyHash: leadership.KeyHash{1}, Token: r.Token}
		ch, err = rule.Apply(s, leadership.SayReady{LeaseRequest: c.Request()})
	case e.Type == leadership.EventServing:
		ch, err = rule.Apply(s, leadership.SayServing{LeaseRequest: named.Request()})
	case e.Type == leadership.EventYielded:
		ch, err = rule.Apply(s, leadership.Yield{LeaseRequest: named.Request()})
	case e.Type == leadership.EventDelegated:
		d := e.ReadDetail()
		if d.Budget == nil || d.Depth == nil {
			return ch, errors.New("it does not say what was delegated"), true
		}
		ch, err = rule.Delegate(s, rule.DelegateCommand{
			Renewal: named, Child: d.Child, Limits: leadership.Limits{Depth: *d.Depth, Budget: *d.Budget}, Made: r.Standing.Delegated.Last,
		})
	case byLeader(e):
		ch, err = rule.Apply(s, leadership.HandOver{LeaseRequest: named.Request(), To: successorOf(e), Within: endsByOf(e).Sub(s.Now), Reason: e.Reason})
	default:
		return ch, nil, false
	}
	return ch, err, true
}

// judged repeats a verdict by its event.
func judged(s rule.Snapshot, e leadership.Event) (rule.Change, error) {
	return rule.Apply(s, leadership.Judge{Token: s.Record.Token, Verdict: e.ReadDetail().Verdict, Evidence: e.Reason, Actor: e.Actor})
}

// unlock runs the rule with the acknowledgement that it asks for here: ME1 checks that of the call.
func unlock(s rule.Snapshot, reason, actor string) (rule.Change, error) {
	c := leadership.Unlock{Reason: reason, Actor: actor}
	ch, err := rule.Apply(s, c)
	if refusal, ok := errors.AsType[*leadership.Error](err); ok && refusal.Code == leadership.LeaseHeld {
		_, c.Acknowledge, _ = strings.Cut(refusal.Detail, "with exactly this acknowledge: ")
		return rule.Apply(s, c)
	}
	return ch, err
}

// configAt is the configuration that an event left, as an answer shows it that was given before the
// next one. If none does, it is the previous one but for its description: it was changed, and
// nothing else is known of it.
func (p *search) configAt(from leadership.Revision, was leadership.Config) leadership.Config {
	next := leadership.Revision(math.MaxInt64)
	for _, g := range p.groups {
		e := g.last()
		if e.Revision > from && e.Revision < next && (e.Type == leadership.EventConfigured || e.Type == leadership.EventRecreated) {
			next = e.Revision
		}
	}
	for _, c := range p.calls {
		if a := c.Answer; a != nil && a.Revision >= from && a.Revision < next {
			return a.Config
		}
	}
	was.Description += " (changed)"
	return was
}

// sameEvents compares what a rule writes with the history, except for what only a store knows.
func sameEvents(rule, history []leadership.Event, exact bool) bool {
	if len(rule) != len(history) {
		return false
	}
	for i, e := range rule {
		e.At, e.RequestID = history[i].At, history[i].RequestID
		if e.Actor == "" {
			e.Actor = history[i].Actor
		}
		switch e.Type { // a heartbeat may be missing that moved the instant in it
		case leadership.EventAcquired: // CH
			e.Detail = history[i].Detail
		case leadership.EventDeposed, leadership.EventReleased:
			e.Detail = replaced(e.Detail, bannedUntil(e), bannedUntil(history[i]))
		case leadership.EventHandingOver:
			if !exact && byLeader(e) && successorOf(e) == successorOf(history[i]) {
				e.Detail = history[i].Detail
			}
		case leadership.EventUnlocked, leadership.EventApprovalRequested:
			e.Reason, e.Detail = history[i].Reason, history[i].Detail
		case leadership.EventEvicted, leadership.EventLifted:
			if standingOf(e).ID == "" || strings.HasPrefix(standingOf(e).ID, "cooldown-") {
				e.Detail = history[i].Detail
			}
		}
		if e != history[i] {
			return false
		}
	}
	return true
}

// millisecond is by how much the rest of a lease, or of a lock, may be rounded on the wire.
const millisecond = time.Millisecond

// agrees reports whether the answer shows the election as it is. Whether a lease has lapsed is not
// compared, because it is not always told; nor is when it was acquired, which is for people.
func agrees(a *leadership.Lease, s rule.Snapshot) bool {
	want := s.Lease()
	rounded := want.LockedFor - a.LockedFor
	if rounded < 0 {
		rounded = -rounded
	}
	return a.State == want.State && a.LeaderID == want.LeaderID && a.Token == want.Token && a.Revision == want.Revision &&
		a.LeaseDuration == want.LeaseDuration && a.Metadata == want.Metadata && a.Config == want.Config && a.Deleted == want.Deleted &&
		a.EndsBy.Equal(want.EndsBy) && a.EndsBecause == want.EndsBecause && a.Report == want.Report &&
		a.LastHeartbeat.Equal(want.LastHeartbeat) && a.LeaseExpiration.Equal(want.LeaseExpiration) &&
		a.Succession.Yielded == want.Succession.Yielded && a.Succession.Ready == want.Succession.Ready && a.NotServing == want.NotServing && a.Parent == want.Parent &&
		rounded < millisecond && remains(a)
}

// remains reports whether the rest of a held lease agrees with the answer's own instants.
func remains(a *leadership.Lease) bool {
	if a.State != leadership.Held {
		return a.ExpiresIn == 0
	}
	rounded := max(a.LeaseExpiration.Sub(a.ReadAt), 0) - a.ExpiresIn // over for a caller that came long after its twin
	return rounded >= 0 && rounded < millisecond
}
