package rule_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// Each of these is refused before the store is asked, and its sentence says what to do.
func TestBadBallotPoliciesAndCandidaciesAreRefusedWithTheirSentence(t *testing.T) {
	t.Parallel()
	service := service.New(&slowStore{})
	names := func(n, length int) leadership.Names {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("%0*d", length, i))
		}
		return leadership.NewNames(all...)
	}
	policy := func(change func(*leadership.BallotPolicy)) error {
		p := leadership.BallotPolicy{Strategy: leadership.StrategyPriority}
		change(&p)
		_, err := service.Do(t.Context(), leadership.Configure{Election: "jobs", Config: leadership.Config{Ballot: p}})
		return err
	}
	quorum := func(q leadership.QuorumPolicy) error {
		return policy(func(p *leadership.BallotPolicy) { p.Quorum = q })
	}
	candidacy := func(c leadership.Candidacy) error {
		_, err := service.Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", Candidacy: c})
		return err
	}
	three := leadership.NewNames("ann", "bob", "cy")
	for _, c := range []struct {
		field, says string
		err         error
	}{
		{"policy.strategy", `policy.strategy is firstCome, priority, capability, leastLoaded, random or roundRobin, not "bully"`, policy(func(p *leadership.BallotPolicy) { p.Strategy = "bully" })},
		{"policy.prefer", `policy.prefer counts with the strategy "capability" only; choose it, or leave prefer out`, policy(func(p *leadership.BallotPolicy) { p.Prefer = "gpu" })},
		{"policy.prefer", "a name of policy.prefer is 1 to 64 of A-Z", policy(func(p *leadership.BallotPolicy) { p.Strategy, p.Prefer = leadership.StrategyCapability, "a/b" })},
		{"policy.require", "policy.require has at most 32 names, not 33", policy(func(p *leadership.BallotPolicy) { p.Require = names(33, 3) })},
		{"policy.require", "a name of policy.require is 1 to 64 of A-Z", policy(func(p *leadership.BallotPolicy) { p.Require = names(1, 65) })},
		{"policy.require", "policy.require: a set of names is sorted", policy(func(p *leadership.BallotPolicy) { p.Require = "ssd gpu" })},
		{"policy.require", "policy.require: a set of names is sorted", policy(func(p *leadership.BallotPolicy) { p.Require = "gpu gpu" })},
		{"policy.window", "policy.window is from 0s to 30s, not 31s", policy(func(p *leadership.BallotPolicy) { p.Window = 31 * time.Second })},
		{"policy.window", "policy.window is from 0s to 30s, not -1s", policy(func(p *leadership.BallotPolicy) { p.Window = -time.Second })},
		{"policy.window", "policy.window is in whole milliseconds, not 1.5ms", policy(func(p *leadership.BallotPolicy) { p.Window = 1500 * time.Microsecond })},
		{"policy.window", "policy.window is more than 0s with a quorum", policy(func(p *leadership.BallotPolicy) { p.Window, p.Quorum.Electorate = leadership.NoWindow, three })},
		{"policy.preempt", `policy.preempt goes with the strategies "priority", "capability" and "leastLoaded"`, policy(func(p *leadership.BallotPolicy) { p.Strategy, p.Preempt = leadership.StrategyRandom, true })},
		{"policy.preempt", "policy.preempt goes with", policy(func(p *leadership.BallotPolicy) { p.Strategy, p.Preempt = "", true })},
		{"policy.minTerm", "policy.minTerm is how long a leader is safe from policy.preempt; set preempt, or leave minTerm out", policy(func(p *leadership.BallotPolicy) { p.MinTerm = time.Minute })},
		{"policy.minTerm", "policy.minTerm is from 1s to 720h, not 999ms", policy(func(p *leadership.BallotPolicy) { p.Preempt, p.MinTerm = true, 999*time.Millisecond })},
		{"policy.minTerm", "policy.minTerm is from 1s to 720h, not -1s", policy(func(p *leadership.BallotPolicy) { p.Preempt, p.MinTerm = true, -time.Second })},
		{"policy.quorum.electorate", "policy.quorum.electorate names 1 to 31 members", quorum(leadership.QuorumPolicy{Need: 1})},
		{"policy.quorum.electorate", "policy.quorum.electorate names 1 to 31 members", quorum(leadership.QuorumPolicy{Grace: time.Second})},
		{"policy.quorum.electorate", "policy.quorum.electorate has at most 31 members, not 32", quorum(leadership.QuorumPolicy{Electorate: names(32, 3)})},
		{"policy.quorum.electorate", "a candidate's id is made of", quorum(leadership.QuorumPolicy{Electorate: "a/b"})},
		{"policy.quorum.electorate", "a candidate's id has at most 128 characters", quorum(leadership.QuorumPolicy{Electorate: names(1, 129)})},
		{"policy.quorum.electorate", "a set of names is sorted", quorum(leadership.QuorumPolicy{Electorate: "bob ann"})},
		{"policy.quorum.need", `policy.quorum.need is "majority", or from 1 to the 3 members of the electorate, not 4`, quorum(leadership.QuorumPolicy{Electorate: three, Need: 4})},
		{"policy.quorum.need", "not -1", quorum(leadership.QuorumPolicy{Electorate: three, Need: -1})},
		{"policy.quorum.grace", "policy.quorum.grace is from 0s to 10m, not 11m", quorum(leadership.QuorumPolicy{Electorate: three, Grace: 11 * time.Minute})},
		{"policy.quorum.grace", "policy.quorum.grace is from 0s to 10m, not -1s", quorum(leadership.QuorumPolicy{Electorate: three, Grace: -time.Second})},
		{"policy.quorum.grace", "policy.quorum.grace is in whole milliseconds, not 1.5ms", quorum(leadership.QuorumPolicy{Electorate: three, Grace: 1500 * time.Microsecond})},

		{"role", `role is "candidate" or "witness", not "leader"`, candidacy(leadership.Candidacy{Role: leadership.RoleLeader})},
		{"priority", "priority is from -2147483648 to 2147483647, not 2147483648", candidacy(leadership.Candidacy{Priority: leadership.MaxPriority + 1})},
		{"priority", "not -2147483649", candidacy(leadership.Candidacy{Priority: leadership.MinPriority - 1})},
		{"load", "load is from 0 to 2147483647, not -1", candidacy(leadership.Candidacy{Load: -1})},
		{"load", "not 2147483648", candidacy(leadership.Candidacy{Load: leadership.MaxLoad + 1})},
		{"capabilities", "capabilities has at most 32 names, not 33", candidacy(leadership.Candidacy{Capabilities: names(33, 3)})},
		{"capabilities", "a name of capabilities is 1 to 64", candidacy(leadership.Candidacy{Capabilities: names(1, 65)})},
		{"capabilities", "capabilities: a set of names is sorted", candidacy(leadership.Candidacy{Capabilities: "ssd gpu"})},
	} {
		var e *leadership.Error
		if !errors.As(c.err, &e) || e.Code != leadership.InvalidArgument || e.Field != c.field || !strings.Contains(e.Detail, c.says) {
			t.Errorf("got %+v, want %s of %s that says %q", c.err, leadership.InvalidArgument, c.field, c.says)
		}
	}
}

func TestBadCallsOfMembersAreRefusedWithTheirSentence(t *testing.T) {
	t.Parallel()
	join := func(change func(*leadership.JoinRequest)) error {
		r := leadership.JoinRequest{Election: "jobs", CandidateID: "ann", Role: leadership.RoleFollower, TTL: time.Minute}
		change(&r)
		return r.Validate()
	}
	await := func(change func(*leadership.AcknowledgementRequest)) error {
		r := leadership.AcknowledgementRequest{Election: "jobs", Token: 1, Need: 1}
		change(&r)
		return r.Validate()
	}
	for _, c := range []struct {
		field, says string
		err         error
	}{
		{"election", "an election needs a name", join(func(r *leadership.JoinRequest) { r.Election = "" })},
		{"candidateId", "a candidate needs an id", join(func(r *leadership.JoinRequest) { r.CandidateID = "" })},
		{"role", `role is "follower", "worker" or "witness", not "leader"; a candidate is a member while it waits`, join(func(r *leadership.JoinRequest) { r.Role = leadership.RoleLeader })},
		{"role", `not ""`, join(func(r *leadership.JoinRequest) { r.Role = "" })},
		{"ttl", "ttl is from 10s to 5m, not 9s", join(func(r *leadership.JoinRequest) { r.TTL = 9 * time.Second })},
		{"ttl", "not 5m1s", join(func(r *leadership.JoinRequest) { r.TTL = 5*time.Minute + time.Second })},
		{"ttl", "ttl is in whole milliseconds", join(func(r *leadership.JoinRequest) { r.TTL += time.Microsecond })},
		{"seenToken", "seenToken is a fencing token, or left out, and not -1", join(func(r *leadership.JoinRequest) { r.SeenToken = -1 })},
		{"note", "note is one line of text", join(func(r *leadership.JoinRequest) { r.Note = "a\nb" })},
		{"candidateId", "a candidate needs an id", leadership.LeaveRequest{Election: "jobs"}.Validate()},
		{"fencingToken", "a fencing token is an integer from 1", await(func(r *leadership.AcknowledgementRequest) { r.Token = 0 })},
		{"need", "need is how many members must follow, from 1 to 10000, not 0", await(func(r *leadership.AcknowledgementRequest) { r.Need = 0 })},
		{"need", "not 10001", await(func(r *leadership.AcknowledgementRequest) { r.Need = leadership.MaxMembers + 1 })},
		{"wait", "wait is from 0s to 1m, not 1m1s; to wait for longer, ask again", await(func(r *leadership.AcknowledgementRequest) { r.Wait = 61 * time.Second })},
	} {
		var e *leadership.Error
		if !errors.As(c.err, &e) || e.Code != leadership.InvalidArgument || e.Field != c.field || !strings.Contains(e.Detail, c.says) {
			t.Errorf("got %+v, want %s of %s that says %q", c.err, leadership.InvalidArgument, c.field, c.says)
		}
	}
	for _, fine := range []error{join(func(*leadership.JoinRequest) {}), await(func(*leadership.AcknowledgementRequest) {})} {
		if fine != nil {
			t.Error(fine)
		}
	}
}

// What a policy leaves out is filled in, and what means the same is the same: configured again, it
// writes nothing.
func TestAPolicyHasOneForm(t *testing.T) {
	t.Parallel()
	three := leadership.NewNames("ann", "bob", "cy")
	for _, c := range []struct{ given, stored leadership.BallotPolicy }{
		{leadership.BallotPolicy{}, leadership.BallotPolicy{}},
		{leadership.BallotPolicy{Strategy: leadership.StrategyFirstCome, Window: leadership.NoWindow}, leadership.BallotPolicy{}},
		{leadership.BallotPolicy{Strategy: leadership.StrategyFirstCome, Window: time.Second}, leadership.BallotPolicy{Window: time.Second}},
		{leadership.BallotPolicy{Strategy: leadership.StrategyRandom}, leadership.BallotPolicy{Strategy: leadership.StrategyRandom, Window: leadership.DefaultWindow}},
		{leadership.BallotPolicy{Strategy: leadership.StrategyRandom, Window: leadership.NoWindow}, leadership.BallotPolicy{Strategy: leadership.StrategyRandom, Window: leadership.NoWindow}},
		{
			leadership.BallotPolicy{Quorum: leadership.QuorumPolicy{Electorate: three}},
			leadership.BallotPolicy{Window: leadership.DefaultWindow, Quorum: leadership.QuorumPolicy{Electorate: three, Grace: leadership.DefaultGrace}},
		},
	} {
		s := rule.Snapshot{Record: rule.Record{Election: "jobs"}, Now: noon}
		for _, p := range []leadership.BallotPolicy{c.given, c.stored} {
			s = play(t, s, 0, applies(leadership.Configure{Config: leadership.Config{Ballot: p}}))
		}
		if got := s.Record.Policy.Ballot; got != c.stored || s.Record.Revision != 1 || s.Lease().Config.Ballot != c.stored {
			t.Errorf("%+v is stored as %+v at revision %d, want %+v", c.given, got, s.Record.Revision, c.stored)
		}
		s = play(t, s, 0, func(s rule.Snapshot) (rule.Change, error) {
			config := leadership.Config{Ballot: c.given, Term: leadership.TermPolicy{OnTrip: leadership.TripStepDown}}
			return rule.Apply(s, leadership.Configure{Config: config})
		})
		if s.Record.Revision != 1 {
			t.Errorf("%+v: what a trip does if nothing is said is said, and stored as %+v", c.given, s.Record.Policy.Term)
		}
		if want := c.stored.Window > 0; c.given.HasBallot() != want {
			t.Errorf("%+v has a ballot: %t", c.given, !want)
		}
	}
}
