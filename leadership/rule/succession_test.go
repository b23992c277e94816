package rule_test

import (
	"cmp"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// The lease of ann, who has the key 'a', is handed over to bob, who has the key 'b'.

func annsLease(s rule.Snapshot) rule.Renewal {
	return rule.Renewal{Election: "jobs", CandidateID: "ann", KeyHash: hash('a'), Token: s.Record.Token}
}

func handOver(to leadership.CandidateID, within time.Duration) decision {
	return func(s rule.Snapshot) (rule.Change, error) {
		return rule.Apply(s, leadership.HandOver{LeaseRequest: annsLease(s).Request(), To: to, Within: within, Reason: "an upgrade"})
	}
}

func ready(id leadership.CandidateID, key byte) decision {
	return func(s rule.Snapshot) (rule.Change, error) {
		return rule.Apply(s, leadership.SayReady{LeaseRequest: rule.Renewal{CandidateID: id, KeyHash: hash(key), Token: s.Record.Token}.Request()})
	}
}

func serving(id leadership.CandidateID, key byte) decision {
	return func(s rule.Snapshot) (rule.Change, error) {
		return rule.Apply(s, leadership.SayServing{LeaseRequest: rule.Renewal{CandidateID: id, KeyHash: hash(key), Token: s.Record.Token}.Request()})
	}
}

func yield(s rule.Snapshot) (rule.Change, error) {
	return rule.Apply(s, leadership.Yield{LeaseRequest: annsLease(s).Request()})
}

func acquire(id leadership.CandidateID, key byte) decision {
	return func(s rule.Snapshot) (rule.Change, error) {
		return rule.Acquire(s, rule.AcquireCommand{CandidateID: id, KeyHash: hash(key)})
	}
}

// handingOver is ann's lease of 30 s, 5 s after its grant, handed over within a minute; bob is
// ready; and ann has yielded.
func handingOver(t *testing.T) rule.Snapshot {
	return done(t, held(t, 5*time.Second), handOver("bob", time.Minute))
}

func bobIsReady(t *testing.T) rule.Snapshot { return done(t, handingOver(t), ready("bob", 'b')) }

func yielded(t *testing.T) rule.Snapshot { return done(t, bobIsReady(t), yield) }

// decided is what a store would write.
func decided(s rule.Snapshot, decide decision) (rule.Snapshot, rule.Change, error) {
	ch, _, err := rule.Codec{}.Decide(s, rule.Carried{}, decide)
	if err != nil {
		return s, ch, err
	}
	return apply(s, ch), ch, nil
}

func wantRefusal(t *testing.T, what string, s rule.Snapshot, rule decision, code leadership.Code, reason leadership.Reason) {
	t.Helper()
	_, ch, err := decided(s, rule)
	var e *leadership.Error
	if !errors.As(err, &e) || e.Code != code || e.Reason != reason || !ch.Empty() {
		t.Errorf("%s: got %+v, %v; want %s %s", what, ch.Events, err, code, reason)
	}
}

func TestAYieldIsTheLastWordOfItsLeader(t *testing.T) {
	s := yielded(t)
	assert.ErrorIs(t, rule.Check(s, 1), leadership.TokenStale, "its token")
	if l := s.Lease(); l.State != leadership.Held || l.LeaderID != "ann" || !l.Succession.Yielded || !l.Succession.Ready || l.Succession.Left != rule.YieldWindow || !l.Succession.Since.Equal(noon.Add(5*time.Second)) {
		t.Errorf("a reader sees %+v", l)
	}
	renewal := annsLease(s)
	wantRefusal(t, "renew", s, func(s rule.Snapshot) (rule.Change, error) { return rule.Renew(s, renewal) }, leadership.LeaseLost, "")
	withReport := renewal
	withReport.Report = `{"tasks":1}`
	wantRefusal(t, "report", s, func(s rule.Snapshot) (rule.Change, error) { return rule.Renew(s, withReport) }, leadership.LeaseLost, "")
	wantRefusal(t, "hand over to another", s, handOver("cy", time.Minute), leadership.LeaseLost, "")
	wantRefusal(t, "delegate", s, func(s rule.Snapshot) (rule.Change, error) {
		return rule.Delegate(s, rule.DelegateCommand{Renewal: renewal, Child: "jobs.a"})
	}, leadership.LeaseLost, "")
	wantRefusal(t, "ask for an approval", s, applies(leadership.RequestApproval{LeaseRequest: renewal.Request(), Note: "may I"}), leadership.LeaseLost, "")
	wantRefusal(t, "acquire with its key", s, acquire("ann", 'a'), leadership.LeaseHeld, leadership.ReasonHeld)
	wantRefusal(t, "acquire with another key", s, acquire("ann", 'x'), leadership.LeaseHeld, leadership.ReasonHeld)
	wantRefusal(t, "a new epoch", s, ordered(leadership.Order{Kind: leadership.OrderApprove, Token: 1, NewEpoch: true}), leadership.TokenStale, "")
	wantRefusal(t, "a verdict", s, applies(leadership.Judge{Token: 1, Verdict: leadership.VerdictBad, Evidence: "seen", Actor: "v"}), leadership.TokenStale, "")
	for what, rule := range map[string]decision{
		"yield again": yield,
		"release":     released,
		"step down":   applies(leadership.StepDown{LeaseRequest: renewal.Request(), Reason: "tired", For: time.Minute}),
	} {
		if _, ch, err := decided(s, rule); err != nil || !ch.Empty() {
			t.Errorf("%s: got %+v, %v; the lease is its successor's", what, ch, err)
		}
	}
}

func TestNoOtherTakesAYieldedLease(t *testing.T) {
	s := yielded(t)
	for what, c := range map[string]rule.AcquireCommand{
		"another candidate":            {CandidateID: "cy", KeyHash: hash('c')},
		"another with bob's key":       {CandidateID: "cy", KeyHash: hash('b')},
		"bob with another key":         {CandidateID: "bob", KeyHash: hash('x')},
		"bob as a witness":             {CandidateID: "bob", KeyHash: hash('b'), Candidacy: leadership.Candidacy{Role: leadership.RoleWitness}},
		"another that withdraws bob":   {CandidateID: "cy", KeyHash: hash('c'), Withdraw: "bob"},
		"another with a high priority": {CandidateID: "cy", KeyHash: hash('c'), Candidacy: leadership.Candidacy{Priority: 9}},
	} {
		wantRefusal(t, what, s, func(s rule.Snapshot) (rule.Change, error) { return rule.Acquire(s, c) }, leadership.LeaseHeld, leadership.ReasonHeld)
	}
	wantRefusal(t, "ready with another key", s, ready("bob", 'x'), leadership.LeaseHeld, leadership.ReasonIncarnation)
	wantRefusal(t, "ready as another", s, ready("cy", 'c'), leadership.NotEligible, "")
}

func TestAYieldNeverMakesALeaseLonger(t *testing.T) {
	s := bobIsReady(t)
	s.Now = noon.Add(29 * time.Second)
	yielded := done(t, s, yield)
	if end := yielded.Record.LeaseEnd(); !end.Equal(noon.Add(30 * time.Second)) {
		t.Errorf("it ends at %v", end)
	}
	s.Now = noon.Add(30 * time.Second)
	wantRefusal(t, "after the end", s, yield, leadership.LeaseLost, "")
}

func TestAYieldNeedsASuccessorThatIsReady(t *testing.T) {
	wantRefusal(t, "without a hand-over", held(t, time.Second), yield, leadership.NotReady, "")
	wantRefusal(t, "before it is ready", handingOver(t), yield, leadership.NotReady, "")
	wantRefusal(t, "another was named since", done(t, bobIsReady(t), handOver("cy", time.Minute)), yield, leadership.NotReady, "")
	stranger := annsLease(bobIsReady(t))
	stranger.KeyHash = hash('x')
	wantRefusal(t, "another key", bobIsReady(t), applies(leadership.Yield{LeaseRequest: stranger.Request()}), leadership.LeaseLost, "")
	assigned := done(t, handingOver(t), ordered(leadership.Order{Kind: leadership.OrderAssign, CandidateID: "cy", For: time.Minute}))
	assigned = done(t, assigned, ready("cy", 'c'))
	banned := done(t, assigned, ordered(leadership.Order{Kind: leadership.OrderBan, CandidateID: "cy", For: time.Minute}))
	wantRefusal(t, "to a banned one", banned, yield, leadership.NotReady, "")
	assigned.Now = assigned.Now.Add(time.Second)
	assigned, ch, err := decided(assigned, yield)
	if now := assigned.Lease().Succession; err != nil || now.To != "cy" || !now.Since.Equal(noon.Add(5*time.Second)) || ch.Events[0].Detail != `{"to":"cy"}` {
		t.Errorf("to an assigned one: %+v, %+v, %v", now, ch.Events, err)
	}
}

// What an operator orders, in each state of a hand-over: who may lead next, and how.
func TestOrdersBindAHandOverInEveryState(t *testing.T) {
	const (
		goesOn   = "ann goes on"
		toBob    = "bob may be yielded to, or take the lease"
		toCy     = "cy may be yielded to"
		waits    = "no candidate may take the lease before its end"
		refusal  = "refused"
		vacant   = "vacant"
		notBob   = "the hand-over stands, and bob is barred"
		promised = 30 * time.Second
	)
	states := map[string]func(*testing.T) rule.Snapshot{"named": handingOver, "ready": bobIsReady, "yielded": yielded}
	for name, c := range map[string]struct {
		rule decision
		// want in the states named and ready, and in yielded.
		want, yielded string
	}{
		"assign to bob":          {ordered(leadership.Order{Kind: leadership.OrderAssign, CandidateID: "bob", For: time.Hour}), toBob, toBob},
		"assign to cy":           {ordered(leadership.Order{Kind: leadership.OrderAssign, CandidateID: "cy", For: time.Hour}), toCy, waits},
		"assign to ann":          {ordered(leadership.Order{Kind: leadership.OrderAssign, CandidateID: "ann", For: time.Hour}), goesOn, waits},
		"ban bob":                {ordered(leadership.Order{Kind: leadership.OrderBan, CandidateID: "bob", For: time.Hour}), goesOn, waits},
		"ban cy":                 {ordered(leadership.Order{Kind: leadership.OrderBan, CandidateID: "cy", For: time.Hour}), toBob, toBob},
		"freeze":                 {ordered(leadership.Order{Kind: leadership.OrderPause, For: time.Hour}), goesOn, waits},
		"drain":                  {ordered(leadership.Order{Kind: leadership.OrderPause, For: time.Hour, Mode: leadership.PauseDrain}), notBob, waits},
		"evict":                  {ordered(leadership.Order{Kind: leadership.OrderEvict, Token: 1}), toBob, toBob},
		"evict and ban":          {ordered(leadership.Order{Kind: leadership.OrderEvict, Token: 1, Ban: time.Hour}), toBob, toBob},
		"approve":                {ordered(leadership.Order{Kind: leadership.OrderApprove, Token: 1, NewEpoch: true}), toBob, refusal},
		"configure":              {configured(time.Second), toBob, toBob},
		"delete":                 {applies(leadership.Delete{}), refusal, refusal},
		"delete by force":        {deleted, vacant, vacant},
		"unlock":                 {unlocked, vacant, vacant},
		"resume what is no more": {ordered(leadership.Order{Kind: leadership.OrderResume}), toBob, toBob},
	} {
		for state, make := range states {
			what := name + ", " + state
			before := make(t)
			s, _, err := decided(before, c.rule)
			want := c.want
			if state == "yielded" {
				want = c.yielded
			}
			if err != nil || want == refusal {
				if want != refusal || err == nil {
					t.Errorf("%s: %v, want: %s", what, err, want)
				}
				continue
			}
			if vacated := s.Record.LeaderID == ""; vacated || want == vacant {
				if !vacated || want != vacant {
					t.Errorf("%s: vacant: %t, want: %s", what, vacated, want)
				}
				continue
			}
			if state != "yielded" && s.Record.LeaseEnd().Before(noon.Add(promised)) {
				t.Errorf("%s: the lease ends at %v, and %v was promised", what, s.Record.LeaseEnd(), noon.Add(promised))
			}
			if state == "yielded" && !s.Record.LeaseEnd().Equal(before.Record.LeaseEnd()) {
				t.Errorf("%s: the lease ends at %v, and ended at %v", what, s.Record.LeaseEnd(), before.Record.LeaseEnd())
			}
			to := s.Lease().Succession.To
			switch {
			case state == "yielded":
				_, _, err := decided(s, acquire("bob", 'b'))
				if (err == nil) != (want == toBob) {
					t.Errorf("%s: bob acquires: %v, want: %s", what, err, want)
				}
			case want == goesOn && (to != "" || !s.Record.EndsBy.IsZero()), want == toBob && to != "bob", want == toCy && to != "cy", want == notBob && to == "bob":
				t.Errorf("%s: the successor is %q, and the term ends by %v, want: %s", what, to, s.Record.EndsBy, want)
			case want == toBob && state == "ready":
				if _, _, err := decided(s, func(s rule.Snapshot) (rule.Change, error) { return yield(s) }); err != nil {
					t.Errorf("%s: ann yields: %v", what, err)
				}
			}
			if _, _, err := decided(s, acquire("cy", 'c')); !errors.Is(err, leadership.LeaseHeld) {
				t.Errorf("%s: cy acquires: %v", what, err)
			}
		}
	}
}

// handOverTo names one incarnation.
func handOverTo(to leadership.CandidateID, key byte) decision {
	return func(s rule.Snapshot) (rule.Change, error) {
		return rule.Apply(s, leadership.HandOver{LeaseRequest: annsLease(s).Request(), To: to, ToKey: hash(key), Within: time.Minute, Reason: string(key)})
	}
}

func TestNoOtherIncarnationTakesThePlaceOfTheOneThatWasNamed(t *testing.T) {
	ownAgain := leadership.Order{Kind: leadership.OrderAssign, CandidateID: "bob", For: time.Minute, ToKey: hash('b')}
	for what, s := range map[string]rule.Snapshot{
		"named by the leader":        done(t, held(t, 5*time.Second), handOverTo("bob", 'b')),
		"named again, without a key": done(t, held(t, 5*time.Second), handOverTo("bob", 'b'), handOver("bob", time.Minute)),
		"named after another":        done(t, held(t, 5*time.Second), handOverTo("cy", 'c'), handOverTo("bob", 'b')),
		"assigned":                   done(t, held(t, 5*time.Second), ordered(ownAgain)),
		"assigned after another":     done(t, held(t, 5*time.Second), handOverTo("cy", 'c'), ordered(ownAgain)),
	} {
		wantRefusal(t, what+": ready with another key", s, ready("bob", 'x'), leadership.LeaseHeld, leadership.ReasonIncarnation)
		wantRefusal(t, what+": a yield before it is ready", s, yield, leadership.NotReady, "")
		s = done(t, s, ready("bob", 'b'), yield)
		wantRefusal(t, what+": another key takes over", s, acquire("bob", 'x'), leadership.LeaseHeld, leadership.ReasonHeld)
		if s, _, err := decided(s, acquire("bob", 'b')); err != nil || s.Record.Token != 2 {
			t.Errorf("%s: the named one acquires: %v", what, err)
		}
	}
}

func TestAnotherIncarnationMayBeNamedUntilOneIsReady(t *testing.T) {
	s := done(t, held(t, 5*time.Second), handOverTo("bob", 'b'), handOverTo("cy", 'c'), handOverTo("bob", 'n'))
	wantRefusal(t, "the first", s, ready("bob", 'b'), leadership.LeaseHeld, leadership.ReasonIncarnation)
	s = done(t, s, ready("bob", 'n'), ordered(leadership.Order{Kind: leadership.OrderAssign, CandidateID: "bob", For: time.Minute, ToKey: hash('x')}))
	if l := s.Lease(); !l.Succession.Ready {
		t.Error("the assignment of another incarnation has taken the place of the one that is ready")
	}
	kept := done(t, held(t, 5*time.Second), ordered(leadership.Order{Kind: leadership.OrderAssign, CandidateID: "bob", For: time.Minute}), ready("bob", 'b'), handOver("bob", time.Minute))
	if l := kept.Lease(); !l.Succession.Ready {
		t.Error("the one that is ready and assigned is named by the leader, too, and has to say so again")
	}
	freed := done(t, handingOver(t), ordered(leadership.Order{Kind: leadership.OrderBan, CandidateID: "bob", For: time.Minute}))
	if l := freed.Lease(); l.Succession != (leadership.Succession{}) || !l.EndsBy.IsZero() {
		t.Errorf("a banned successor leaves %+v behind", l.Succession)
	}
}

func TestABetterCandidateDoesNotShortenAHandOver(t *testing.T) {
	s := rule.Snapshot{Record: rule.Record{Election: "jobs"}, Now: noon, Guard: guard}
	s = done(t, s, func(s rule.Snapshot) (rule.Change, error) {
		ballot := leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Preempt: true, Window: leadership.NoWindow}
		return rule.Apply(s, leadership.Configure{Config: leadership.Config{Ballot: ballot}})
	})
	for s.Record.LeaderID == "" {
		s = done(t, s, acquire("ann", 'a'))
		s.Now = s.Now.Add(time.Second)
	}
	better := func(s rule.Snapshot) (rule.Change, error) {
		return rule.Acquire(s, rule.AcquireCommand{CandidateID: "cy", KeyHash: hash('c'), Candidacy: leadership.Candidacy{Priority: 9}})
	}
	wantRefusal(t, "during a hand-over", done(t, s, handOver("bob", time.Minute)), better, leadership.LeaseHeld, leadership.ReasonHeld)

	s = done(t, s, better) // the challenger is a successor, too
	require.EqualValues(t, "cy", s.Lease().Succession.To, "the successor")
	s = done(t, s, ready("cy", 'c'))
	if _, ch, err := decided(done(t, s, yield), better); err != nil || len(ch.Events) != 2 || ch.Record.LeaderID != "cy" {
		t.Errorf("the challenger takes over: %+v, %v", ch.Events, err)
	}
	gone := done(t, s, applies(leadership.Withdraw{CandidateID: "cy"}))
	gone = done(t, gone, better)
	wantRefusal(t, "an incarnation of a former challenge", gone, yield, leadership.NotReady, "")
}

func TestALeaderDoesNotServeBeforeItSaysSoWherePolicyWantsThat(t *testing.T) {
	promoted := func(on bool) decision {
		return applies(leadership.Configure{Config: leadership.Config{Promotion: on}})
	}
	s := done(t, elsewhere(), promoted(true))
	s = done(t, s, acquire("ann", 'a'))
	assert.True(t, s.Lease().NotServing, "it serves from the start")
	wantRefusal(t, "with another key", s, serving("ann", 'x'), leadership.LeaseLost, "")
	wantRefusal(t, "in the words of a successor", s, ready("ann", 'a'), leadership.NotEligible, "")
	service, check := service.New(&past{snap: s}), leadership.TokenCheck{Election: "jobs", Token: s.Record.Token}
	_, err := service.CheckToken(t.Context(), check)
	assert.NoError(t, err, "its token is checked")
	check.Write = true
	_, err = service.CheckToken(t.Context(), check)
	assert.ErrorIs(t, err, leadership.NotReady, "its token is checked for a write")
	told, ch, err := decided(s, serving("ann", 'a'))
	if err != nil || told.Lease().NotServing || len(ch.Events) != 1 || ch.Events[0].Type != leadership.EventServing {
		t.Errorf("it says so: %+v, %v", ch, err)
	}
	if ch, err := serving("ann", 'a')(told); err != nil || !ch.Empty() {
		t.Errorf("again: %+v, %v", ch, err)
	}
	assert.False(t, new(done(t, s, promoted(false))).Lease().NotServing, "it does not serve though the policy does not ask")
	if s := done(t, held(t, 0), promoted(true)); s.Lease().NotServing {
		t.Error("a leader of before does not serve")
	}
}

// badRequests are refused by the name of the field, as the API spells it, before the store is
// asked.
func TestBadRequestsOfASuccessionNameTheField(t *testing.T) {
	s, ctx := service.New(nil), t.Context()
	ledger := service.NewLedger(s, nil)
	lease := leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Key: leadership.Key{1}, Token: 1}
	long := strings.Repeat("x", 1<<20)
	wrong := func(change func(*leadership.LeaseRequest)) leadership.LeaseRequest {
		r := lease
		change(&r)
		return r
	}
	put := func(r leadership.CheckpointRequest) error {
		r.LeaseRequest = lease
		return errOf(ledger.PutCheckpoint(ctx, r))
	}
	add := func(after leadership.Index, entries ...leadership.Entry) error {
		return errOf(ledger.AppendJournal(ctx, leadership.AppendRequest{LeaseRequest: lease, After: after, Entries: entries}))
	}
	via := func(v leadership.Via) error {
		r := leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", Via: v}
		return cmp.Or(r.Validate(), errOf(s.Acquire(ctx, r)))
	}
	one := leadership.Entry{Data: []byte(`1`)}
	noKey := wrong(func(r *leadership.LeaseRequest) { r.Key = leadership.Key{} })
	for _, c := range []struct {
		field string
		err   error
	}{
		{"election", errOf(s.Do(ctx, leadership.HandOver{LeaseRequest: wrong(func(r *leadership.LeaseRequest) { r.Election = "-" }), To: "bob"}))},
		{"fencingToken", errOf(s.Do(ctx, leadership.HandOver{LeaseRequest: wrong(func(r *leadership.LeaseRequest) { r.Token = 0 }), To: "bob"}))},
		{"key", errOf(s.Do(ctx, leadership.HandOver{LeaseRequest: noKey, To: "bob"}))},
		{"to", errOf(s.Do(ctx, leadership.HandOver{LeaseRequest: lease}))},
		{"to", errOf(s.Do(ctx, leadership.HandOver{LeaseRequest: lease, To: "a b"}))},
		{"to", errOf(s.Do(ctx, leadership.HandOver{LeaseRequest: lease, To: "ann"}))},
		{"within", errOf(s.Do(ctx, leadership.HandOver{LeaseRequest: lease, To: "bob", Within: time.Second - 1}))},
		{"within", errOf(s.Do(ctx, leadership.HandOver{LeaseRequest: lease, To: "bob", Within: 10*time.Minute + time.Millisecond}))},
		{"within", errOf(s.Do(ctx, leadership.HandOver{LeaseRequest: lease, To: "bob", Within: time.Second + 1}))},
		{"reason", errOf(s.Do(ctx, leadership.HandOver{LeaseRequest: lease, To: "bob", Reason: "a\nb"}))},
		{"candidateId", errOf(s.Do(ctx, leadership.SayReady{LeaseRequest: leadership.LeaseRequest{Election: "jobs", Key: lease.Key, Token: 1}}))},
		{"key", errOf(s.Do(ctx, leadership.SayReady{LeaseRequest: leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Token: 1}}))},
		{"key", errOf(s.Do(ctx, leadership.Yield{LeaseRequest: noKey}))},
		{"child", errOf(s.Delegate(ctx, leadership.DelegateRequest{LeaseRequest: lease}))},
		{"child", errOf(s.Delegate(ctx, leadership.DelegateRequest{LeaseRequest: lease, Child: "a.b"}))},
		{"child", errOf(s.Delegate(ctx, leadership.DelegateRequest{LeaseRequest: lease, Child: long}))},
		{"limits.depth", errOf(s.Delegate(ctx, leadership.DelegateRequest{LeaseRequest: lease, Child: "a", Limits: leadership.Limits{Depth: 33}}))},
		{"limits.children", errOf(s.Delegate(ctx, leadership.DelegateRequest{LeaseRequest: lease, Child: "a", Limits: leadership.Limits{Children: -2}}))},
		{"limits.budget", errOf(s.Delegate(ctx, leadership.DelegateRequest{LeaseRequest: lease, Child: "a", Limits: leadership.Limits{Budget: -2}}))},
		{"via.election", via(leadership.Via{Token: 1})},
		{"via.fencingToken", via(leadership.Via{Election: "orders"})},
		{"via.peer", via(leadership.Via{Peer: "a b", Election: "orders", Token: 1})},
		{"via.peer", via(leadership.Via{Peer: "eu", Election: "orders", Token: 1})},
		{"policy.leadersOf", configures(s, t, leadership.Config{LeadersOf: "Orders."})},
		{"policy.leadersOf", configures(s, t, leadership.Config{LeadersOf: "orders.", Delegation: leadership.Delegation{Parent: "all"}})},
		{"policy.delegation", configures(s, t, leadership.Config{Delegation: leadership.Delegation{Depth: -1}})},
		{"policy.delegation.parent", configures(s, t, leadership.Config{Delegation: leadership.Delegation{Parent: "all"}})},
		{"sequence", put(leadership.CheckpointRequest{Data: []byte(`1`)})},
		{"task", put(leadership.CheckpointRequest{Sequence: 1, Task: long[:257], Data: []byte(`1`)})},
		{"data", put(leadership.CheckpointRequest{Sequence: 1})},
		{"data", put(leadership.CheckpointRequest{Sequence: 1, Data: []byte(`1`), URI: "gs://b/o"})},
		{"data", put(leadership.CheckpointRequest{Sequence: 1, Data: []byte(`{`)})},
		{"data", put(leadership.CheckpointRequest{Sequence: 1, Data: []byte("\"\xff\"")})},
		{"uri", put(leadership.CheckpointRequest{Sequence: 1, URI: "gs://b /o"})},
		{"sha256", put(leadership.CheckpointRequest{Sequence: 1, URI: "gs://b/o", SHA256: "00"})},
		{"sha256", put(leadership.CheckpointRequest{Sequence: 1, Data: []byte(`1`), SHA256: strings.Repeat("00", 32)})},
		{"after", add(-1)},
		{"entries", add(0)},
		{"entries", add(0, make([]leadership.Entry, 501)...)},
		{"entries/1/type", add(0, one, leadership.Entry{Type: long[:65], Data: []byte(`1`)})},
		{"entries/0/data", add(0, leadership.Entry{Data: []byte(`x`)})},
		{"entries/0/data", add(0, leadership.Entry{Data: []byte("\"\xff\"")})},
		{"upTo", errOf(ledger.SnapshotJournal(ctx, leadership.SnapshotRequest{LeaseRequest: lease, Data: []byte(`1`)}))},
		{"after", leadership.JournalRequest{Election: "jobs", After: -1}.Validate()},
		{"applied", leadership.JournalRequest{Election: "jobs", Applied: 1}.Validate()},
		{"member", leadership.JournalRequest{Election: "jobs", Member: "a b"}.Validate()},
		{"limit", leadership.JournalRequest{Election: "jobs", Limit: 1001}.Validate()},
	} {
		var e *leadership.Error
		if !errors.As(c.err, &e) || e.Code != leadership.InvalidArgument || e.Field != c.field || e.Detail == "" {
			t.Errorf("got %v, want %s of %q", c.err, leadership.InvalidArgument, c.field)
		}
	}
	half := leadership.Entry{Data: []byte(`"` + long[:300<<10] + `"`)}
	for field, err := range map[string]error{
		"data":           put(leadership.CheckpointRequest{Sequence: 1, Data: []byte(`"` + long[:64<<10] + `"`)}),
		"entries":        add(0, half, half),
		"entries/0/data": add(0, leadership.Entry{Data: []byte(`"` + long + `"`)}),
	} {
		var e *leadership.Error
		if !errors.As(err, &e) || e.Code != leadership.PayloadTooLarge || e.Field != field {
			t.Errorf("too much: got %v, want %s of %q", err, leadership.PayloadTooLarge, field)
		}
	}
}

func configures(s *service.Service, t *testing.T, config leadership.Config) error {
	_, err := s.Do(t.Context(), leadership.Configure{Election: "jobs", Config: config})
	return err
}

// A candidate that was named in an earlier term says nothing of this one: its process may be gone.
func TestACopyOfReadyBindsNoSuccessorInALaterTerm(t *testing.T) {
	s := limitedHeld(t, leadership.TermPolicy{})
	s = play(t, s, 0, handOver("bob", time.Minute))
	late := rule.Renewal{CandidateID: "bob", KeyHash: hash('b'), Token: s.Record.Token}
	says := applies(leadership.SayReady{LeaseRequest: late.Request()})
	play(t, s, 0, says)
	s = play(t, s, 0, released)
	s = play(t, s, time.Second, by("ann"))
	s = play(t, s, 0, handOver("bob", time.Minute))
	if ch, err := says(s); !errors.Is(err, leadership.TokenStale) || !ch.Empty() {
		t.Errorf("got %+v, %v", ch.Events, err)
	}
}
