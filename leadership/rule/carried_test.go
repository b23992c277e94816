package rule

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/internal/form"
)

const maxCounter = 1<<53 - 1 // of a report

var aMoment = time.Date(2026, 12, 31, 23, 59, 59, 123457000, time.UTC)

// fullest is a policy and a standing in which everything is as long as it can be. Rules cannot make
// all of it at once; more they cannot make.
func fullest() (Policy, Standing) {
	quotes := func(n int) string { return strings.Repeat(`"`, n) } // each takes two bytes
	digests := func(n int) string { return strings.Join(slices.Repeat([]string{form.Digest("x")}, n), " ") }
	id := func(i int) leadership.CandidateID {
		return leadership.CandidateID(strings.Repeat("c", leadership.MaxCandidateLength-2) + fmt.Sprintf("%02d", i))
	}
	counters := leadership.Counters{Progress: maxCounter, Tasks: maxCounter, TokensUsed: maxCounter, Calls: maxCounter, Errors: maxCounter}
	p := Policy{Config: leadership.Config{
		LeaseDuration: leadership.MaxLeaseDuration, MaxLeaseDuration: leadership.MaxLeaseDuration, LockDelay: leadership.MaxLockDelay, RetireAfter: leadership.MaxRetireAfter, Description: quotes(form.MaxText),
		Term: leadership.TermPolicy{
			MaxTerm: leadership.MaxOrder, StuckAfter: leadership.MaxOrder, Cooldown: leadership.MaxCooldown, CooldownOf: leadership.CooldownPrincipal, Verdicts: leadership.MaxVerdicts, OnTrip: leadership.TripNotify, Budget: counters,
			Approval: leadership.ApprovalPolicy{Every: leadership.MaxOrder, Need: leadership.MaxApprovals}, ErrorRate: leadership.ErrorRate{Max: 0.30000000000000004, Min: maxCounter},
			Series: leadership.SeriesPolicy{Failures: leadership.MaxFailures, Within: leadership.MaxOrder, Budget: counters, BudgetWithin: leadership.MaxOrder},
		},
		Ballot: leadership.BallotPolicy{
			Strategy: leadership.StrategyCapability, Require: longNames(leadership.MaxCapabilities, leadership.MaxCapabilityLength), Prefer: longNames(leadership.MaxCapabilities, leadership.MaxCapabilityLength),
			Window: leadership.MaxWindow, Preempt: true, MinTerm: leadership.MaxOrder,
			Quorum: leadership.QuorumPolicy{Electorate: longNames(leadership.MaxElectorate, leadership.MaxCandidateLength), Need: leadership.MaxElectorate, Grace: leadership.MaxGrace},
		},
	}}
	why := trip{}
	for _, worst := range []leadership.TermPolicy{{Budget: leadership.Counters{TokensUsed: maxCounter - 1}}, {ErrorRate: leadership.ErrorRate{Max: 0.30000000000000004, Min: 1}}} {
		if t := judgeCounters(worst, counters); len(t.why) > len(why.why) {
			why = t
		}
	}
	var tripped []breaker
	for i := range maxBreakers {
		tripped = append(tripped, breaker{id(i), leadership.MaxToken, leadership.MaxCooldown.Milliseconds(), aMoment, why.why, quotes(form.MaxText)})
	}
	report := leadership.Report{Counters: counters, Health: "ok", Custom: map[string]json.RawMessage{"x": nil}}
	report.Custom["x"] = json.RawMessage(`"` + strings.Repeat("x", leadership.MaxReportBytes-len(encoded(report))+len("null")-2) + `"`)
	text, err := report.Text()
	if err != nil || len(text) != leadership.MaxReportBytes {
		panic(fmt.Sprint(len(text), err))
	}
	parked := judgeSeries(leadership.SeriesPolicy{Budget: leadership.Counters{TokensUsed: maxCounter - 1}, BudgetWithin: leadership.MaxOrder - time.Millisecond}, counters)
	s := Standing{
		Series: series{
			form.WriteList(slices.Repeat([]failure{{leadership.MaxToken, aMoment}}, leadership.MaxFailures)),
			form.WriteList(slices.Repeat([]spending{{aMoment, counters}}, maxSpendings+1)), parked.why,
		},
		Note: quotes(form.MaxText), Principal: quotes(form.MaxText), Breakers: breakers(form.WriteList(tripped)), Report: text, ReportedAt: aMoment, Notified: true, EpochFrom: leadership.MaxToken - 1,
		Approval: approval{digests(leadership.MaxApprovals), leadership.MaxOrder.Milliseconds(), true, digests(maxApprovalOrders), true, true, true},
		Ends:     ends{aMoment, aMoment, aMoment, aMoment, leadership.EndsHandOver, aMoment, wholeEnd{aMoment, leadership.EndsDrained}}, Verdicts: verdicts{digests(leadership.MaxVerdicts), digests(leadership.MaxVerdicts)},
		Probation: probation{aMoment, leadership.MaxLeaseDuration.Milliseconds()}, Deposed: deposed{leadership.MaxToken, why.why},
	}
	bid := leadership.Bid{CandidateID: id(0), Witness: true, Priority: leadership.MinPriority, Load: leadership.MaxLoad, Preferred: leadership.MaxCapabilities, Since: aMoment, At: aMoment, Present: 1<<leadership.MaxElectorate - 1, Instance: math.MaxUint32}
	s.Elected, s.Challenger, s.ChallengerAt, s.Opened, s.Delay, s.Secret, s.LastLeader = bid, id(1), math.MaxUint32, aMoment, maxDelay, secret(NewSecret()), id(2)
	var all []leadership.Bid
	for i := range maxBids {
		bid.CandidateID = id(i)
		all = append(all, bid)
	}
	s.Bids = bids(form.WriteList(all))
	s.Succession = succession{id(3), aMoment, aMoment, id(4), leadership.Key{1}.Hash(), aMoment, ""}
	s.ApprovalLeft = leadership.MaxOrder
	s.Named = handOvers{leadership.MaxToken, digests(maxNamed)}
	s.Parent = leadership.Parent{Peer: strings.Repeat("p", leadership.MaxPeerLength), Election: longElection(1), Token: leadership.MaxToken, Until: aMoment}
	s.NotServing, s.Ended, s.Created = true, ended{leadership.MaxToken, leadership.EndsHandOver}, math.MaxInt64
	s.Delegated = delegated{leadership.MaxChildren, leadership.MaxBudget, longElection(2), leadership.Limits{Depth: leadership.MaxDepth, Children: leadership.MaxChildren, Budget: leadership.MaxBudget}}
	s.Seat, s.Untold = math.MaxInt64, leadership.MaxSeats // seats themselves do not go with all of this
	p.Promotion, p.Delegation = true, leadership.Delegation{Parent: longElection(3), Depth: leadership.MaxDepth, Children: leadership.MaxChildren, Budget: leadership.MaxBudget}
	var orders []leadership.Override
	for i := 0; ; i++ {
		o := leadership.Override{
			ID: leadership.OverrideID(fmt.Sprintf("ban-%d", leadership.MaxToken)), Kind: leadership.OverrideBan, CandidateID: id(i), Actor: quotes(form.MaxText), Reason: quotes(10),
			Since: aMoment, Until: aMoment.Add(leadership.MaxOrder),
		}
		if len(leadership.NewOverrides(append(orders, o))) > maxOverrideBytes {
			for i := range orders { // what is left
				left := (maxOverrideBytes - len(leadership.NewOverrides(orders))) / 2
				orders[i].Reason += quotes(min(left, leadership.MaxReasonBytes-len(orders[i].Reason)))
			}
			s.Overrides = leadership.NewOverrides(orders)
			return p, s
		}
		orders = append(orders, o)
	}
}

func longElection(i int) leadership.Election {
	return leadership.Election(strings.Repeat("e", leadership.MaxElectionLength-2) + fmt.Sprintf("%02d", i))
}

// longNames is a set of so many names of so many bytes.
func longNames(n, length int) leadership.Names {
	var all []string
	for i := range n {
		all = append(all, strings.Repeat("n", length-2)+fmt.Sprintf("%02d", i))
	}
	return leadership.NewNames(all...)
}

func encoded(v any) string {
	text, err := form.JSON(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestEverythingTogetherFitsAndIsReadBack(t *testing.T) {
	r := Record{Election: "jobs"}
	r.Policy, r.Standing = fullest()
	if n := len(r.Standing.Overrides); n < maxOverrideBytes-1 || n > maxOverrideBytes {
		t.Errorf("%d bytes of overrides are not the most", n)
	}
	if field, err := r.Policy.Check(); err != nil {
		t.Errorf("%s: %v", field, err)
	}
	carried, err := Codec{}.Encode(&r)
	t.Logf("policy %d, standing %d bytes", len(carried.Policy), len(carried.Standing))
	if err != nil || carried.Needs != 1 {
		t.Fatalf("needs %d, %v", carried.Needs, err)
	}
	read := Record{Election: "jobs"}
	if err := (Codec{}).Decode(&read, carried); err != nil || read != r {
		t.Errorf("read back as %+v, %v", read, err)
	}
}

// What cannot stand beside the rest of fullest.
func TestMembersThatExcludeOthersAreReadBack(t *testing.T) {
	leading := Policy{Config: leadership.Config{LeadersOf: "orders."}}
	bound := Standing{Succession: succession{Bound: "bob", Key: leadership.Key{1}.Hash()}}
	banned := Standing{Overrides: leadership.NewOverrides([]leadership.Override{{
		ID: "ban-7", Kind: leadership.OverrideBan, Principal: "ann@example.com", Actor: "op", Reason: "r", Since: aMoment, Until: aMoment.Add(time.Hour),
	}})}
	for _, r := range []Record{{Policy: leading}, {Standing: bound}, {Standing: banned}} {
		carried, err := Codec{}.Encode(&r)
		require.NoError(t, err)
		var read Record
		if err := (Codec{}).Decode(&read, carried); err != nil || read != r {
			t.Errorf("%+v is read back as %+v, %v", r, read, err)
		}
	}
}

// What no program writes is not trusted, in the members of a term, of a ballot and of a succession.
func TestCodecRefusesMembersThatNoProgramWrites(t *testing.T) {
	const at = `"2026-01-01T00:00:00Z"`
	key := encoded(leadership.Key{1}.Hash())
	override := `{"id":"ban-7","kind":"ban","candidateId":"ann","actor":"op","reason":"r","since":"2026-01-01T00:00:00Z","until":"2026-01-02T00:00:00Z"}`
	bid := `{"candidateId":"ann","priority":1,"since":"2026-01-01T00:00:00Z","at":"2026-01-01T00:00:00Z"}`
	succession := `{"delegated":{"children":1,"last":"jobs.a","limits":{"depth":1}},"ended":{"token":1,"because":"expired"},` +
		`"parent":{"election":"orders","token":1,"until":` + at + `},` +
		`"succession":{"to":"bob","since":` + at + `,"ends":` + at + `,"ready":"bob","key":` + key + `,"yielded":` + at + `}}`
	for _, fine := range []string{`{"overrides":[` + override + `]}`, `{"bids":[` + bid + `]}`, succession} {
		require.NoError(t, (Codec{}).Decode(&Record{Election: "jobs"}, Carried{Standing: fine, Needs: 1}))
	}
	instead := func(list, of, from, to string) string {
		if strings.Count(of, from) == 0 {
			t.Fatalf("%s is not there", from)
		}
		return `{"` + list + `":[` + strings.Replace(of, from, to, 1) + `]}`
	}
	change := func(from, to string) string { return instead("overrides", override, from, to) }
	withBid := func(from, to string) string { return instead("bids", bid, from, to) }
	for name, standing := range map[string]string{
		"an unknown member of an override": change(`"id"`, `"x":1,"id"`),
		"an override without an end":       change(`,"until":"2026-01-02T00:00:00Z"`, ``),
		"an end before the beginning":      change(`2026-01-02`, `2025-01-02`),
		"an end in another zone":           change(`2026-01-02T00:00:00Z`, `2026-01-02T00:00:00+02:13`),
		"an override of no kind":           change(`"kind":"ban"`, `"kind":"bin"`),
		"a ban of no candidate":            change(`"candidateId":"ann",`, ``),
		"a ban with a mode":                change(`"actor"`, `"mode":"drain","actor"`),
		"spaces":                           change(`,"kind"`, `, "kind"`),
		"no overrides":                     `{"overrides":[]}`,
		"too many overrides":               `{"overrides":[` + strings.Repeat(override+",", leadership.MaxOverrides) + override + `]}`,
		"a cooldown without an end":        `{"breakers":[{"candidateId":"ann","cooldownMs":1}]}`,
		"an order without a reason":        `{"ends":{"ordered":"2026-01-01T00:00:00Z"}}`,
		"a reason without an order":        `{"ends":{"because":"evicted"}}`,
		"empty ends":                       `{"ends":{}}`,
		"a report of no form":              `{"report":{"x":1}}`,
		"a probation without an end":       `{"probation":{"leaseMs":1000}}`,
		"a false":                          `{"notified":false}`,
		"a token of 0":                     `{"epochFrom":0}`,
		"a deposition without a reason":    `{"deposed":{"fencingToken":1}}`,
		"too many verdicts":                `{"verdicts":{"bad":"` + strings.Repeat("x ", leadership.MaxVerdicts) + `x"}}`,
		"too many approvals":               `{"approval":{"by":"` + strings.Repeat("x ", leadership.MaxApprovals) + `x"}}`,

		"no bids":                          `{"bids":[]}`,
		"too many bids":                    `{"bids":[` + strings.Repeat(bid+",", maxBids) + bid + `]}`,
		"a bid of no candidate":            withBid(`"candidateId":"ann",`, ``),
		"a bid of no possible candidate":   withBid(`"ann"`, `"a b"`),
		"a bid with an unknown member":     withBid(`"priority"`, `"x":1,"priority"`),
		"too high a priority":              withBid(`1`, `2147483648`),
		"a negative load":                  withBid(`"priority":1`, `"load":-1`),
		"more preferences than there are":  withBid(`"priority":1`, `"preferred":33`),
		"more members than an electorate":  withBid(`"at":"2026-01-01T00:00:00Z"`, `"at":"2026-01-01T00:00:00Z","present":2147483648`),
		"a bid in another zone":            withBid(`"at":"2026-01-01T00:00:00Z"`, `"at":"2026-01-01T00:00:00+02:13"`),
		"an elected of no candidate":       `{"elected":{"priority":1}}`,
		"an empty elected":                 `{"elected":{}}`,
		"a challenger that is no name":     `{"challenger":"a b"}`,
		"an empty challenger":              `{"challenger":""}`,
		"a last leader that is no name":    `{"lastLeader":"a b"}`,
		"a short secret":                   `{"secret":"0011"}`,
		"a secret that is no hexadecimals": `{"secret":"0123456789abcdeg"}`,

		"an empty hand-over":                `{"succession":{}}`,
		"a hand-over without a beginning":   `{"succession":{"to":"bob","ends":` + at + `}}`,
		"a hand-over without an end":        `{"succession":{"to":"bob","since":` + at + `}}`,
		"an end of no hand-over":            `{"succession":{"ends":` + at + `}}`,
		"a successor without a key":         `{"succession":{"ready":"bob"}}`,
		"two successors with one key":       `{"succession":{"ready":"bob","bound":"bob","key":` + key + `}}`,
		"a key of no successor":             `{"succession":{"key":` + key + `}}`,
		"a yield to no successor":           `{"succession":{"to":"bob","since":` + at + `,"ends":` + at + `,"yielded":` + at + `}}`,
		"a successor that is no name":       `{"succession":{"ready":"a b","key":` + key + `}}`,
		"a hand-over in another zone":       `{"succession":{"to":"bob","since":"2026-01-01T00:00:00+02:13","ends":` + at + `}}`,
		"a parent without a name":           `{"parent":{"token":1,"until":` + at + `}}`,
		"a parent without an end":           `{"parent":{"election":"orders","token":1}}`,
		"a parent of a peer without a form": `{"parent":{"peer":"a b","election":"orders","token":1,"until":` + at + `}}`,
		"a parent in nanoseconds":           `{"parent":{"election":"orders","token":1,"until":"2026-01-01T00:00:00.000000001Z"}}`,
		"no children":                       `{"delegated":{"last":"jobs.a"}}`,
		"a child without a name":            `{"delegated":{"children":1}}`,
		"a negative budget of a child":      `{"delegated":{"children":1,"budget":-1,"last":"jobs.a"}}`,
		"negative limits":                   `{"delegated":{"children":1,"last":"jobs.a","limits":{"depth":-1}}}`,
		"serving as a false":                `{"notServing":false}`,
		"an end of no term":                 `{"ended":{"because":"expired"}}`,
	} {
		r := Record{Election: "jobs"}
		if err := (Codec{}).Decode(&r, Carried{Standing: standing, Needs: 1}); !errors.Is(err, leadership.RecordCorrupt) {
			t.Errorf("%s: got %+v, %v", name, r.Standing, err)
		}
	}
	for name, policy := range map[string]string{
		"a fraction of a counter": `{"budget":{"tasks":1.5}}`,
		"an unknown counter":      `{"budget":{"coffee":1}}`,
		"a negative budget":       `{"budget":{"tasks":-1}}`,
		"no rate":                 `{"errorRate":{"max":2,"min":1}}`,
		"a null":                  `{"approvalNeed":null}`,

		"names twice":                 `{"require":"gpu gpu"}`,
		"names in no order":           `{"prefer":"ssd gpu"}`,
		"two spaces":                  `{"electorate":"ann  bob"}`,
		"a window of less than none":  `{"windowMs":-2}`,
		"a window of 0":               `{"windowMs":0}`,
		"too long a window":           `{"windowMs":30001}`,
		"no preempt":                  `{"preempt":false}`,
		"a fraction of a member":      `{"quorumNeed":1.5}`,
		"a grace of less than none":   `{"quorumGraceMs":-1}`,
		"a strategy that is a number": `{"strategy":1}`,
	} {
		r := Record{Election: "jobs"}
		if err := (Codec{}).Decode(&r, Carried{Policy: policy, Needs: 1}); !errors.Is(err, leadership.RecordCorrupt) {
			t.Errorf("%s: got %+v, %v", name, r.Policy, err)
		}
	}
}

func TestRecordThatDisagreesWithItsTermIsNotTrusted(t *testing.T) {
	held := Record{
		Election: "jobs", Token: 2, Revision: 2, LeaderID: "ann", KeyHash: leadership.Key{1}.Hash(), LeaseDuration: time.Minute, AcquiredAt: aMoment, HeartbeatAt: aMoment,
	}
	vacant := Record{Election: "jobs", Token: 2, Revision: 2, EndedAt: aMoment}
	handingOver := succession{To: "bob", Since: aMoment, Ends: aMoment}
	for name, c := range map[string]struct {
		record Record
		spoil  func(*Record)
	}{
		"a term is limited and its lease is not": {held, func(r *Record) { r.Standing.Ends.Term = aMoment }},
		"an epoch of the future":                 {held, func(r *Record) { r.Standing.EpochFrom = 2 }},
		"a future token was deposed":             {held, func(r *Record) { r.Standing.Deposed = deposed{3, "x"} }},
		"vacant with a report":                   {vacant, func(r *Record) { r.Standing.Report = `{"tasks":1}` }},
		"vacant with an end":                     {vacant, func(r *Record) { r.Standing.Ends.Term = aMoment }},
		"vacant with an epoch":                   {vacant, func(r *Record) { r.Standing.EpochFrom = 1 }},
		"vacant with an elected":                 {vacant, func(r *Record) { r.Standing.Elected.CandidateID = "ann" }},
		"vacant with a challenger":               {vacant, func(r *Record) { r.Standing.Challenger = "bob" }},
		"bids of no ballot":                      {vacant, func(r *Record) { r.Standing.Bids = `[{"candidateId":"ann"}]` }},
		"a ballot without bids":                  {vacant, func(r *Record) { r.Standing.Opened = aMoment }},
		"a delay without bids":                   {vacant, func(r *Record) { r.Standing.Delay = BidTurn }},
		"a leader and bids":                      {held, func(r *Record) { r.Standing.Bids, r.Standing.Opened = `[{"candidateId":"ann"}]`, aMoment }},
		"another was elected than leads":         {held, func(r *Record) { r.Standing.Elected.CandidateID = "bob" }},
		"a challenger without an end":            {held, func(r *Record) { r.Standing.Challenger = "bob" }},
		"a challenge without a challenger": {held, func(r *Record) {
			r.Standing.Ends.Challenged, r.EndsBy, r.EndsBecause = aMoment, aMoment, leadership.EndsHandOver
		}},
		"a term has ended that was not yet": {vacant, func(r *Record) { r.Standing.Ended = ended{3, leadership.EndsExpired} }},
		"vacant and handed over":            {vacant, func(r *Record) { r.Standing.Succession = handingOver }},
		"vacant with a parent":              {vacant, func(r *Record) { r.Standing.Parent = leadership.Parent{Election: "orders", Token: 1, Until: aMoment} }},
		"a lock without a beginning":        {vacant, func(r *Record) { r.LockFor, r.EndedAt = time.Hour, time.Time{} }},
		"vacant and not serving":            {vacant, func(r *Record) { r.Standing.NotServing = true }},
		"its parent ends and it does not":   {held, func(r *Record) { r.Standing.Parent = leadership.Parent{Election: "orders", Token: 1, Until: aMoment} }},
		"a hand-over that does not end it":  {held, func(r *Record) { r.Standing.Succession = handingOver }},
		"its own successor":                 {held, func(r *Record) { r.Standing.Succession.Ready = "ann" }},
		"yielded, and it lasts on": {held, func(r *Record) {
			r.Standing.Succession.Yielded, r.EndsBy, r.EndsBecause = aMoment, aMoment.Add(1), leadership.EndsHandOver
		}},
		"both a parent and a leadersOf":      {vacant, func(r *Record) { r.Policy.LeadersOf, r.Policy.Delegation.Parent = "orders.", "all" }},
		"a leadersOf that no name begins so": {vacant, func(r *Record) { r.Policy.LeadersOf = "-" }},
		"a strategy that there is not":       {vacant, func(r *Record) { r.Policy.Ballot.Strategy = "loudest" }},
	} {
		require.NoError(t, VerifyAlone(Snapshot{Record: c.record, Now: aMoment}))
		c.spoil(&c.record)
		assert.ErrorIs(t, VerifyAlone(Snapshot{Record: c.record, Now: aMoment}), leadership.RecordCorrupt, name)
	}
}

func TestChangeThatShortensAPromiseIsRefused(t *testing.T) {
	s := Snapshot{Now: aMoment, Record: Record{
		Election: "jobs", Token: 1, Revision: 1, LeaderID: "ann", KeyHash: leadership.Key{1}.Hash(), LeaseDuration: time.Minute, AcquiredAt: aMoment, HeartbeatAt: aMoment,
	}}
	for name, shorten := range map[string]func(*Record){
		"an earlier end":  func(r *Record) { r.EndsBy, r.EndsBecause = aMoment.Add(time.Minute-1), leadership.EndsEvicted },
		"a shorter lease": func(r *Record) { r.LeaseDuration = 59 * time.Second },
	} {
		_, _, err := Codec{}.Decide(s, Carried{}, func(s Snapshot) (Change, error) {
			ch := s.change()
			shorten(&ch.Record)
			ch.announce(leadership.EventEvicted, "")
			return ch, nil
		})
		if err == nil || !strings.Contains(err.Error(), "its leader was told") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.Now = aMoment.Add(-time.Millisecond) // by the clock of a server that is behind
	if _, _, err := (Codec{}).Decide(s, Carried{}, func(s Snapshot) (Change, error) { ch := s.change(); return ch, ch.epoch(s.Now) }); err != nil {
		t.Errorf("a new epoch, which begins when it is committed: %v", err)
	}
}

// Two leaders are worse than none: whatever a rule may say, this is not written.
func TestChangeThatPassesALiveLeaseToAnyButTheSuccessorIsRefused(t *testing.T) {
	held := Snapshot{Now: aMoment, Record: Record{
		Election: "jobs", Token: 1, Revision: 1, LeaderID: "ann", KeyHash: leadership.Key{1}.Hash(), LeaseDuration: time.Minute, AcquiredAt: aMoment, HeartbeatAt: aMoment,
	}}
	yielded := held
	yielded.Record.Standing.Succession = succession{Ready: "bob", Key: leadership.Key{2}.Hash(), Yielded: aMoment.Add(time.Second)}
	yielded.Record.EndsBy, yielded.Record.EndsBecause = aMoment.Add(time.Second), leadership.EndsHandOver
	for name, c := range map[string]struct {
		s    Snapshot
		to   leadership.CandidateID
		key  byte
		says string
	}{
		"to the successor":                       {yielded, "bob", 2, ""},
		"without a yield":                        {held, "bob", 2, "has not yielded"},
		"to another incarnation of the leader":   {held, "ann", 9, "has not yielded"},
		"to another candidate":                   {yielded, "cy", 3, "has not yielded to it"},
		"to another incarnation":                 {yielded, "bob", 9, "has not yielded to it"},
		"back to the leader under another token": {yielded, "ann", 1, "leads again"},
	} {
		_, _, err := Codec{}.Decide(c.s, Carried{}, func(s Snapshot) (Change, error) {
			ch := s.change()
			ch.vacate(leadership.EventReleased, s.Now, 0)
			ch.grant(AcquireCommand{CandidateID: c.to, KeyHash: leadership.Key{c.key}.Hash()}, s.Now)
			return ch, nil
		})
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	_, _, err := Codec{}.Decide(yielded, Carried{}, func(s Snapshot) (Change, error) {
		ch := s.change()
		ch.Record.Standing.Succession, ch.Record.EndsBy, ch.Record.EndsBecause = succession{}, time.Time{}, ""
		ch.announce(leadership.EventGoesOn, "")
		return ch, nil
	})
	if err == nil || !strings.Contains(err.Error(), "leads again") {
		t.Errorf("a yield is taken back: %v", err)
	}
}

func FuzzParseReport(f *testing.F) {
	for _, text := range []string{
		`{"progress":412,"eta":"20m","tasks":3,"tokensUsed":81000,"calls":50,"errors":4,"health":"ok","capabilities":{"gpu":true},"dependencies":{"bq":"ok"}}`,
		`{"Progress":1}`, `{"progress":1e3}`, `{"custom":{"a": [1.50, "\u2028<"]}}`, `{"capabilities":{},"health":"\ud800"}`, `{"eta":"-1s"}`, `null`, ` {} `,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		report, err := leadership.ParseReport(text)
		if err != nil || report == "" {
			return
		}
		if len(report) > leadership.MaxReportBytes {
			t.Fatalf("%d bytes were taken", len(report))
		}
		if again, err := leadership.ParseReport([]byte(report)); err != nil || again != report {
			t.Fatalf("%s becomes %s, %v", report, again, err)
		}
		r := Record{Election: "jobs", Standing: Standing{Report: report}}
		carried, err := Codec{}.Encode(&r)
		read := Record{Election: "jobs"}
		if err != nil || (Codec{}).Decode(&read, carried) != nil || read != r {
			t.Fatalf("%s is read back as %s", report, read.Standing.Report)
		}
	})
}
