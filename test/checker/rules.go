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
			CandidateID: c.Candidate, KeyHash: c.Key, LeaseDuration: c.Lease, Metadata: c.Metadata, Candidacy: c.Candidacy,
		})
	case Renew:
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
	case HandOver:
		return rule.Apply(s, leadership.HandOver{LeaseRequest: named.Request(), To: cmp.Or(c.To, c.Chosen), Chosen: c.To == "", Within: cmp.Or(c.Within, leadership.DefaultWithin), Reason: c.Reason})
	case Ready:
		return c.ready(s)
	case Serving:
		return rule.Apply(s, leadership.SayServing{LeaseRequest: named.Request()})
	case Yield:
		return rule.Apply(s, leadership.Yield{LeaseRequest: named.Request()})
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

// codeFor is the code that the caller receives for what the rule did. A candidate that has bid, or
// challenged the leader, is refused. A check for a write is refused if the instance finds too few
// members, which no rule knows.
func (c Call) codeFor(ch rule.Change, err error) leadership.Code {
	switch {
	case err != nil:
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
	r := s.Record
	switch e := events[len(events)-1]; e.Type {
	case leadership.EventExpired, leadership.EventDeposed:
		if e.RequestID != "" && !s.Live() {
			return rule.Lapse(s, r.Token, r.HeartbeatAt, r.LeaseEnd())
		}
		return rule.Expire(s)
	case leadership.EventReleased:
		held := rule.Renewal{Election: r.Election, CandidateID: r.LeaderID, KeyHash: r.KeyHash, Token: r.Token}
		return rule.Apply(s, leadership.Release{LeaseRequest: held.Request()})
	case leadership.EventAcquired:
		// no one else has this key: unrecorded leases are told apart by their tokens
		key := leadership.KeyHash{1}
		if s.Live() { // it takes over
			key = r.Standing.Succession.Key
		}
		return acquire(s, true, rule.AcquireCommand{
			CandidateID: e.LeaderID, KeyHash: key, LeaseDuration: p.foreign[e.Token], Candidacy: candidacyOf(e, r.Policy.Ballot),
		})
	case leadership.EventHandingOver: // a challenge
		challenger := leadership.Candidacy{Priority: leadership.MaxPriority, Capabilities: union(r.Policy.Ballot.Require, r.Policy.Ballot.Prefer)}
		return acquire(s, false, rule.AcquireCommand{CandidateID: successorOf(e), KeyHash: leadership.KeyHash{1}, Candidacy: challenger})
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
	}
	return rule.Change{}, leadership.NotFound
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
		case leadership.EventHandingOver:
			if !exact && byLeader(e) && successorOf(e) == successorOf(history[i]) {
				e.Detail = history[i].Detail
			}
		case leadership.EventUnlocked:
			e.Reason, e.Detail = history[i].Reason, history[i].Detail
		case leadership.EventEvicted, leadership.EventLifted:
			if standingOf(e).ID == "" {
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
		a.EndsBy.Equal(want.EndsBy) && a.EndsBecause == want.EndsBecause &&
		a.LastHeartbeat.Equal(want.LastHeartbeat) && a.LeaseExpiration.Equal(want.LeaseExpiration) &&
		a.Succession.Yielded == want.Succession.Yielded && a.Succession.Ready == want.Succession.Ready && a.NotServing == want.NotServing &&
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
