package rule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// What neither a hand-over nor an order gets past: each is refused, and nothing is written.
func TestHandOversAndOrdersAreRefusedForWhatStandsInTheirWay(t *testing.T) {
	minute := func(c leadership.Order) decision { c.For = time.Minute; return ordered(c) }
	assign := minute(leadership.Order{Kind: leadership.OrderAssign, CandidateID: "cy"})
	ban := minute(leadership.Order{Kind: leadership.OrderBan, CandidateID: "bob"})
	pause := minute(leadership.Order{Kind: leadership.OrderPause})
	configure := func(c leadership.Config) decision {
		return applies(leadership.Configure{Config: c})
	}
	three := leadership.QuorumPolicy{Electorate: leadership.NewNames("ann", "bob", "cy")}
	quorum := configure(leadership.Config{Ballot: leadership.BallotPolicy{Quorum: three}})
	gpu := configure(leadership.Config{Ballot: leadership.BallotPolicy{Require: "gpu"}})
	evict := func(ban time.Duration) decision {
		return ordered(leadership.Order{Kind: leadership.OrderEvict, Token: 1, Ban: ban})
	}
	lead, last := held(t, 5*time.Second), yielded(t)
	last.Record.Token, last.Record.Revision = leadership.MaxToken, leadership.Revision(leadership.MaxToken)
	drain := minute(leadership.Order{Kind: leadership.OrderPause, Mode: leadership.PauseDrain})
	onOne := func(s rule.Snapshot) (rule.Change, error) {
		c := rule.AcquireCommand{CandidateID: "ann", KeyHash: hash('a')}
		c.Parent = rule.ParentLease{Parent: leadership.Parent{Election: "orders", Token: 1, Until: s.Now}, LeaderID: "ann"}
		return rule.Acquire(s, c)
	}
	ask := func(s rule.Snapshot) (rule.Change, error) {
		return rule.Apply(s, leadership.RequestApproval{LeaseRequest: annsLease(s).Request(), Note: "may I"})
	}
	for what, c := range map[string]struct {
		s      rule.Snapshot
		rule   decision
		code   leadership.Code
		reason leadership.Reason
	}{
		"to another than is assigned":     {done(t, lead, assign), handOver("bob", time.Minute), leadership.NotEligible, ""},
		"to a banned candidate":           {done(t, lead, ban), handOver("bob", time.Minute), leadership.LeaseHeld, leadership.ReasonBanned},
		"in a pause":                      {done(t, lead, pause), handOver("bob", time.Minute), leadership.LeaseHeld, leadership.ReasonPaused},
		"a yield of a term that is over":  {at(bobIsReady(t), noon.Add(time.Hour)), yield, leadership.LeaseLost, ""},
		"taken over without a quorum":     {done(t, yielded(t), quorum), acquire("bob", 'b'), leadership.LeaseHeld, leadership.ReasonQuorum},
		"taken over without a capability": {done(t, yielded(t), gpu), acquire("bob", 'b'), leadership.NotEligible, ""},
		"taken over under the last token": {last, acquire("bob", 'b'), leadership.RecordCorrupt, ""},
		"a yield of a drained leader":     {done(t, bobIsReady(t), drain), yield, leadership.NotReady, ""},
		"a parent that is over":           {done(t, elsewhere(), configure(leadership.Config{LeadersOf: "orders"})), onOne, leadership.NotEligible, ""},
		"an order for no election":        {elsewhere(), pause, leadership.NotFound, ""},
		"for a deleted election":          {done(t, lead, deleted), pause, leadership.ElectionDeleted, ""},
		"for another revision":            {lead, minute(leadership.Order{Kind: leadership.OrderPause, IfRevision: 9}), leadership.RevisionMismatch, ""},
		"a ban of a term that is over":    {done(t, lead, released, byBob), evict(time.Minute), leadership.TokenStale, ""},
		"an approval that is not needed":  {lead, approve("op", 1, 0, false), leadership.InvalidArgument, ""},
		"one after a yield":               {yielded(t), approve("op", 1, 0, true), leadership.TokenStale, ""},
		"one without a leader":            {done(t, lead, released), approve("op", 1, 0, true), leadership.TokenStale, ""},
		"one of another token":            {lead, approve("op", 2, 0, true), leadership.TokenStale, ""},
		"a question where none is needed": {lead, ask, leadership.InvalidArgument, ""},
		"a question of no leader":         {done(t, lead, released), ask, leadership.LeaseLost, ""},
	} {
		wantRefusal(t, what, c.s, c.rule, c.code, c.reason)
	}
	_, events := playEvents(t, at(lead, noon.Add(time.Minute)), 0, ban) // the lease is over, not recorded
	if len(events) != 2 || events[0].Type != leadership.EventExpired || events[1].Type != leadership.EventBanned || !strings.Contains(events[1].Detail, `"candidateId":"bob"`) {
		t.Errorf("got %+v", events)
	}
	if _, events = playEvents(t, lead, 0, drain); !strings.Contains(events[0].Detail, `"mode":"drain"`) {
		t.Errorf("got %+v", events)
	}
	anew := done(t, lead, approve("op", 1, 0, true), ordered(leadership.Order{Kind: leadership.OrderEvict, Token: 2}))
	if anew = play(t, anew, 0, evict(time.Minute)); len(anew.Orders().List()) != 1 || anew.Lease().CreatedAt != noon.Unix() {
		t.Errorf("evicted, and banned under the token before its epoch: %s; the election is of %d", anew.Orders(), anew.Lease().CreatedAt)
	}
	banned := at(done(t, lead, evict(time.Minute)), noon.Add(30*time.Second+guard))
	requireNothing(t, "evicted and banned once more, in the next term", done(t, banned, byBob), evict(time.Minute))
	requireNothing(t, "evicted, after its term", done(t, lead, released, byBob), evict(0))
}

func TestALiftedCooldownBarsNoLongerAndANoticeEndsNoTerm(t *testing.T) {
	s := limitedHeld(t, leadership.TermPolicy{Budget: leadership.Counters{Tasks: 1}, Cooldown: time.Hour})
	s = play(t, s, 0, reporting(t, 1, `{"tasks":2}`))
	requireNothing(t, "the cooldown of another", s, ordered(leadership.Order{Kind: leadership.OrderLift, Override: "cooldown-1-bob"}))
	s, events := playEvents(t, s, time.Second, ordered(leadership.Order{Kind: leadership.OrderLift, Override: "cooldown-1-ann"}))
	if len(events) != 1 || !strings.Contains(events[0].Detail, "cooldown-1-ann") {
		t.Errorf("got %+v", events)
	}
	if s = at(s, noon.Add(time.Minute)); refusal(by("ann"), s) != "<nil>" {
		t.Errorf("ann: %v", refusal(by("ann"), s))
	}
	if x := rule.Explain(approvedHeld(t, 1), "ann"); len(x.Causes) != 1 || x.Causes[0].Code != leadership.ReasonApproval {
		t.Errorf("a leader whose term waits for an approval is told %+v", x.Causes)
	}
	notify := limitedHeld(t, leadership.TermPolicy{Verdicts: 1, OnTrip: leadership.TripNotify})
	notify, events = playEvents(t, notify, 0, applies(leadership.Judge{Token: 1, Verdict: leadership.VerdictBad, Evidence: "seen", Actor: "v"}))
	if !notify.Live() || len(events) != 2 || events[1].Type != leadership.EventTripped {
		t.Errorf("a verdict only notifies: %+v of %+v", events, notify.Record)
	}
	_, err := service.New(&slowStore{}).Do(t.Context(), leadership.Withdraw{Election: "jobs", CandidateID: "a b"})
	assert.ErrorIs(t, err, leadership.InvalidArgument, "a withdrawal of no possible candidate")
}
