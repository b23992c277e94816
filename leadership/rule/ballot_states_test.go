package rule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// A candidate that asks in each state of an election, under each strategy: it opens a ballot, or is
// refused with the reason that counts before any ballot. A ballot that is opened is decided.
func TestEachStateOpensABallotOrRefusesUnderEachStrategy(t *testing.T) {
	t.Parallel()
	order := func(c leadership.Order) func(*testing.T, rule.Snapshot) rule.Snapshot {
		return func(t *testing.T, s rule.Snapshot) rule.Snapshot {
			return play(t, s, time.Second, ordered(c))
		}
	}
	leads := func(t *testing.T, s rule.Snapshot) rule.Snapshot {
		s = play(t, s, 0, asks(bidder("ann", 1)))
		return play(t, s, time.Second, asks(bidder("ann", 1)))
	}
	after := func(rules ...decision) func(*testing.T, rule.Snapshot) rule.Snapshot {
		return func(t *testing.T, s rule.Snapshot) rule.Snapshot {
			s = leads(t, s)
			for _, r := range rules {
				s = play(t, s, time.Second, r)
			}
			return s
		}
	}
	configure := func(s rule.Snapshot) (rule.Change, error) {
		config := s.Record.Policy.Config
		config.Description += "."
		return rule.Apply(s, leadership.Configure{Config: config})
	}
	end := func(s rule.Snapshot) (rule.Change, error) { return releases(s)(s) }
	remove := applies(leadership.Delete{Force: true})
	later := func(d time.Duration, state func(*testing.T, rule.Snapshot) rule.Snapshot) func(*testing.T, rule.Snapshot) rule.Snapshot {
		return func(t *testing.T, s rule.Snapshot) rule.Snapshot {
			s = state(t, s)
			s.Now = s.Now.Add(d)
			return s
		}
	}
	const lease = leadership.DefaultLeaseDuration
	for name, c := range map[string]struct {
		state  func(*testing.T, rule.Snapshot) rule.Snapshot
		code   leadership.Code // "": a ballot opens
		reason leadership.Reason
		events int // of that change
	}{
		"configured":                 {func(_ *testing.T, s rule.Snapshot) rule.Snapshot { return s }, "", "", 0},
		"held":                       {leads, leadership.LeaseHeld, leadership.ReasonHeld, 0},
		"released":                   {after(end), "", "", 0},
		"within the guard":           {later(lease, leads), leadership.LeaseHeld, leadership.ReasonLockDelay, 0},
		"lapsed and not recorded":    {later(lease+guard, leads), "", "", 1},
		"expired":                    {later(lease+guard, after()), "", "", 1},
		"deleted by force":           {after(remove), leadership.ElectionDeleted, "", 0},
		"recreated within the lease": {after(remove, configure), leadership.LeaseHeld, leadership.ReasonLockDelay, 0},
		"recreated after it":         {later(lease+guard, after(remove, configure)), "", "", 0},
		"unlocked":                   {after(unlocked), "", "", 0},
		"raised": {after(func(s rule.Snapshot) (rule.Change, error) {
			return rule.Raise(s, rule.RaiseCommand{Above: 90})
		}), leadership.LeaseHeld, leadership.ReasonLockDelay, 0},
		"raised long ago": {later(lease+guard, after(func(s rule.Snapshot) (rule.Change, error) {
			return rule.Raise(s, rule.RaiseCommand{Above: 90})
		})), "", "", 0},
		"paused":              {order(leadership.Order{Kind: leadership.OrderPause, For: time.Minute}), leadership.LeaseHeld, leadership.ReasonPaused, 0},
		"paused until now":    {later(time.Minute, order(leadership.Order{Kind: leadership.OrderPause, For: time.Minute})), "", "", 0},
		"banned":              {order(leadership.Order{Kind: leadership.OrderBan, CandidateID: "bob", For: time.Minute}), leadership.LeaseHeld, leadership.ReasonBanned, 0},
		"another banned":      {order(leadership.Order{Kind: leadership.OrderBan, CandidateID: "ann", For: time.Minute}), "", "", 0},
		"assigned to another": {order(leadership.Order{Kind: leadership.OrderAssign, CandidateID: "ann", For: time.Minute}), leadership.LeaseHeld, leadership.ReasonAssigned, 0},
		"assigned":            {order(leadership.Order{Kind: leadership.OrderAssign, CandidateID: "bob", For: time.Minute}), "", "", 0},
		"evicted":             {later(lease+guard, after(ordered(leadership.Order{Kind: leadership.OrderEvict}))), "", "", 1},
		"new epoch":           {after(ordered(leadership.Order{Kind: leadership.OrderApprove, Token: 1, NewEpoch: true})), leadership.LeaseHeld, leadership.ReasonHeld, 0},
		"carried": {func(t *testing.T, s rule.Snapshot) rule.Snapshot {
			s = play(t, s, 0, asks(bidder("zoe", 9))) // a bid by the other store's clock
			to := rule.Snapshot{Record: rule.Record{Election: "jobs"}, Now: s.Now.Add(time.Second), Guard: guard}
			return play(t, to, 0, func(to rule.Snapshot) (rule.Change, error) {
				return rule.Carry(to, rule.CarryCommand{From: s})
			})
		}, "", "", 0},
		"a ballot of long ago": {later(time.Hour, func(t *testing.T, s rule.Snapshot) rule.Snapshot {
			return play(t, s, 0, asks(bidder("zoe", 9)))
		}), "", "", 0},
	} {
		for _, strategy := range leadership.Strategies() {
			s := balloted(t, ballotOf(strategy))
			s.Guard = guard
			s = c.state(t, s)
			if c.code != "" {
				if e := refused(t, s, asks(bidder("bob", 2))); e.Code != c.code || e.Reason != c.reason {
					t.Errorf("%s, %s: refused with %s %s, want %s %s", name, strategy, e.Code, e.Reason, c.code, c.reason)
				}
				continue
			}
			token := s.Record.Token
			s, events := playEvents(t, s, 0, asks(bidder("bob", 2)))
			if r := s.Record; len(events) != c.events || r.LeaderID != "" || r.Standing.Bids == "" || !r.Standing.Opened.Equal(s.Now) {
				t.Errorf("%s, %s: no ballot opens: %+v, %+v", name, strategy, events, r)
			}
			if e := refused(t, s, asks(bidder("bob", 2))); e.Reason != leadership.ReasonBallot || e.Cause.Of != 1 || e.RetryAfter != time.Second {
				t.Errorf("%s, %s: its only bidder hears %v", name, strategy, e)
			}
			if x := rule.Explain(s, "bob"); len(x.Causes) != 1 || x.Causes[0].Code != leadership.ReasonBallot || x.Causes[0].Position != 1 {
				t.Errorf("%s, %s: explained as %+v", name, strategy, x.Causes)
			}
			if s = play(t, s, time.Second, asks(bidder("bob", 2))); s.Record.LeaderID != "bob" || s.Record.Token != token+1 || s.Record.Standing.Bids != "" {
				t.Errorf("%s, %s: %+v", name, strategy, s.Record)
			}
		}
	}
}

func TestTheDrawOfATermWasFixedWhenTheTermBeforeBegan(t *testing.T) {
	s := balloted(t, leadership.BallotPolicy{Strategy: leadership.StrategyRandom})
	with := func(secret string) rule.AcquireCommand {
		c := caller("ann")
		c.Secret = secret
		return c
	}
	s = play(t, s, 0, asks(with("0000000000000001")))
	assert.EqualValues(t, "0000000000000001", s.Record.Standing.Secret, "the first ballot")
	s = tried(t, s, time.Millisecond, asks(with("0000000000000002")))
	s = play(t, s, leadership.DefaultWindow, asks(with("0000000000000003")))
	if s.Record.LeaderID != "ann" || s.Record.Standing.Secret != "0000000000000003" {
		t.Errorf("the secret of the next draw: %+v", s.Record)
	}
	l := s.Lease()
	if d := rule.NextDraw(l); d != (rule.Draw{Election: "jobs", Token: 2, Secret: "0000000000000003"}) {
		t.Errorf("an instance ranks its line by %+v", d)
	}
	s = play(t, s, time.Second, releases(s))
	s = play(t, s, 0, asks(with("0000000000000004")))
	assert.EqualValues(t, "0000000000000003", s.Record.Standing.Secret, "the opener of a later ballot draws again")
}

func TestAServiceDrawsASecretForEachCall(t *testing.T) {
	store := &slowStore{snap: rule.Snapshot{Now: noon}}
	s := service.New(store)
	_, err := s.Do(t.Context(), leadership.Configure{Election: "jobs", Config: leadership.Config{Ballot: leadership.BallotPolicy{Strategy: leadership.StrategyRandom, Window: leadership.NoWindow}}})
	require.NoError(t, err)
	seen := make(map[string]bool)
	for range 10 {
		g, err := s.Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: "ann"})
		if err != nil || len(g.DrawSecret) != 16 || seen[g.DrawSecret] {
			t.Fatalf("%q, %v", g.DrawSecret, err)
		}
		seen[g.DrawSecret] = true
		_, err = s.Do(t.Context(), leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Key: g.Key, Token: g.Token}})
		require.NoError(t, err)
	}
}

func TestExplainSaysHowACandidateStandsInABallot(t *testing.T) {
	s := balloted(t, leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Quorum: leadership.QuorumPolicy{Electorate: leadership.NewNames("ann", "bob", "cy")}})
	requireCause := func(id leadership.CandidateID, want leadership.Cause) {
		t.Helper()
		x := rule.Explain(s, id)
		if want.Left > 0 {
			want.Until = s.Now.Add(want.Left)
		}
		if x.Leads || len(x.Causes) != 1 || x.Causes[0] != want {
			t.Errorf("%s: explained as %+v, want %+v", id, x.Causes, want)
		}
	}
	if x := rule.Explain(s, "ann"); len(x.Causes) != 0 {
		t.Errorf("nothing keeps the first that asks: %+v", x.Causes)
	}
	s = play(t, s, 0, asks(bidder("ann", 1)))
	requireCause("ann", leadership.Cause{Code: leadership.ReasonQuorum, Position: 1, Of: 1, Have: 1, Need: 2, Left: leadership.DefaultWindow})
	requireCause("dee", leadership.Cause{Code: leadership.ReasonQuorum, Have: 1, Need: 2})
	s = play(t, s, 0, asks(bidder("bob", 2)))
	requireCause("bob", leadership.Cause{Code: leadership.ReasonBallot, Position: 1, Of: 2, Left: leadership.DefaultWindow})
	requireCause("ann", leadership.Cause{Code: leadership.ReasonOutranked, Position: 2, Of: 2, Left: leadership.DefaultWindow + rule.BidTurn})
	requireCause("dee", leadership.Cause{Code: leadership.ReasonBallot, Of: 2, Left: leadership.DefaultWindow})
	s.Now = s.Now.Add(time.Minute)
	if x := rule.Explain(s, "ann"); len(x.Causes) != 0 {
		t.Errorf("all bids are void: %+v", x.Causes)
	}
}
