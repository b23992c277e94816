package rule_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// TestNoCallEndsALeaseBeforeWhatItsLeaderWasTold plays random courses of all rules, and holds them
// to this: a lease ends no earlier than its leader was told, but by its own release, its yield or
// an unlock; a yielded lease passes to its successor alone, with its key, and its leader never
// leads again; no lease lasts for longer than the one that it stands on was known to; after any
// other end no lease is granted before that instant; no candidate is granted against an order, a
// cooldown or a missing approval, and none is refused without one; a call that is made again
// changes nothing; and what is stored is read back as it was. Ballots and challenges are held to
// their policy: see electorate.
func TestNoCallEndsALeaseBeforeWhatItsLeaderWasTold(t *testing.T) {
	courses, steps := uint64(300), 400
	if testing.Short() {
		courses = 100
	}
	var all tally
	for seed := range courses {
		c := newCourse(t, seed)
		for range steps {
			c.step()
		}
		all.add(c.tally)
	}
	for what, least := range map[string]int{
		"acquired": 40, "epoch": 1, "deposed": 3, "evicted": 2, "assigned": 2, "paused": 2, "resumed": 1, "banned": 2, "lifted": 1, "approved": 2,
		"BANNED": 2, "ASSIGNED": 2, "PAUSED": 2, "APPROVAL": 1, "late": 1, "carried": 1, "repeated": 20, "unlocked": 1, "judged": 1, "tripped": 1,
		"bid": 40, "BALLOT": 2, "OUTRANKED": 2, "QUORUM": 2, "WITNESS": 1, "NOT_ELIGIBLE": 1, "handingOver": 2, "goesOn": 1, "balloted": 10, "withdrawn": 2,
		"ready": 2, "yielded": 2, "takenOver": 1, "heldBack": 2, "parented": 10, "movedOn": 2, "PARENT": 1,
	} {
		if all[what] < least*int(courses)/10 {
			t.Errorf("%s: %d times in %d courses, too few to say so", what, all[what], courses)
		}
	}
}

type tally map[string]int

func (t *tally) add(other tally) {
	if *t == nil {
		*t = make(tally)
	}
	for what, n := range other {
		(*t)[what] += n
	}
}

// course is an election and what a careful observer has noted of it.
type course struct {
	*testing.T
	*rand.Rand
	tally tally
	snap  rule.Snapshot

	told     time.Time // the end of the present lease, as its leader knows it
	freeFrom time.Time // no grant before
	orders   map[string]order
	awaited  bool // an approval

	ready, heir incarnation      // the one that is ready, and the one that the leader has yielded to
	parent      rule.ParentLease // that the call under way has brought
	parentEnd   time.Time        // of the lease that the present one stands on, as it was known; zero if it stands on none

	report  leadership.Report // the leader's
	voters  *voters
	replays []call
	last    string
}

// incarnation is a candidate with its key.
type incarnation struct {
	id  leadership.CandidateID
	key leadership.KeyHash
}

// call is one that was made under a token.
type call struct {
	token leadership.Token
	rule  decision
}

// order is a standing one, as the observer knows it.
type order struct {
	kind      leadership.OverrideKind
	candidate leadership.CandidateID
	until     time.Time
}

func newCourse(t *testing.T, seed uint64) *course {
	c := &course{
		T: t, Rand: rand.New(rand.NewPCG(seed, 15)), tally: make(tally), orders: make(map[string]order), voters: newVoters(),
		snap: rule.Snapshot{Record: rule.Record{Election: "jobs"}, Now: noon.Add(time.Duration(seed) * 1001), Guard: guard},
	}
	c.do("configure", c.configure())
	return c
}

func (c *course) fatalf(format string, args ...any) {
	c.Helper()
	c.Fatalf("%s: %s; the record is %+v at %v", c.last, fmt.Sprintf(format, args...), c.snap.Record, c.snap.Now)
}

func pick[T any](c *course, all ...T) T { return all[c.IntN(len(all))] }

func (c *course) candidate() leadership.CandidateID {
	return pick(c, leadership.CandidateID("ann"), "bob", "cy")
}

func (c *course) wait() {
	unit := pick(c, time.Microsecond, time.Millisecond, 100*time.Millisecond, 100*time.Millisecond, time.Second, time.Second, 10*time.Second)
	c.snap.Now = c.snap.Now.Add(time.Duration(c.IntN(10)) * unit)
}

func (c *course) step() {
	c.wait()
	c.parent = rule.ParentLease{}
	r := c.snap.Record
	lease := rule.Renewal{Election: "jobs", CandidateID: r.LeaderID, KeyHash: r.KeyHash, Token: r.Token}
	switch n := c.IntN(100); {
	case n < 24:
		c.campaign()
	case n < 25:
		c.withdraw()
	case n < 30:
		c.succeed(lease)
	case n < 35:
		lease.Parent = c.parentNow()
		c.parent = lease.Parent
		c.do("renew", func(s rule.Snapshot) (rule.Change, error) { return rule.Renew(s, lease) })
	case n < 50:
		c.renewWithReport(lease)
	case n < 53:
		c.again("release", applies(leadership.Release{LeaseRequest: lease.Request()}))
	case n < 56:
		down := leadership.StepDown{LeaseRequest: lease.Request(), Reason: "tired", For: pick(c, 0, 20*time.Second)}
		c.again("stepDown", applies(down))
	case n < 76:
		c.order(r.Token)
	case n < 82:
		judge := leadership.Judge{Token: r.Token, Verdict: pick(c, leadership.VerdictBad, leadership.VerdictBad, leadership.VerdictGood), Evidence: "seen", Actor: pick(c, "v", "w")}
		c.again("judge", applies(judge))
	case n < 84:
		ask := leadership.RequestApproval{LeaseRequest: lease.Request(), Note: "may I"}
		c.do("requestApproval", applies(ask))
	case n < 88:
		c.do("configure", c.configure())
	case n < 91:
		c.do("delete", applies(leadership.Delete{Force: c.IntN(2) == 0}))
		c.do("recreate", c.configure())
	case n < 95:
		c.do("expire", rule.Expire)
	case n < 96:
		c.do("retire", rule.Retire)
	case n < 97:
		c.do("unlock", unlocked)
	case n < 98:
		c.move()
	case len(c.replays) > 0:
		if call := pick(c, c.replays...); call.token < r.Token || r.LeaderID == "" {
			c.replay(call.rule)
		}
	}
}

func (c *course) configure() decision {
	config := leadership.Config{LeaseDuration: pick(c, 2*time.Second, 10*time.Second), LockDelay: pick(c, 0, 0, time.Second), RetireAfter: pick(c, 0, time.Hour)}
	config.Term = leadership.TermPolicy{
		MaxTerm: pick(c, 0, 0, 15*time.Second), StuckAfter: pick(c, 0, 20*time.Second), Verdicts: c.IntN(3),
		Budget:    leadership.Counters{Tasks: int64(pick(c, 0, 0, 8))},
		ErrorRate: pick(c, leadership.ErrorRate{}, leadership.ErrorRate{Max: 0.5, Min: 4}),
		OnTrip:    pick(c, "", "", "", leadership.TripNotify), Cooldown: pick(c, 0, 5*time.Second, 30*time.Second),
	}
	config.Ballot = c.ballotPolicy()
	config.Promotion = c.IntN(4) == 0
	switch c.IntN(6) {
	case 0:
		config.LeadersOf = "root"
	case 1:
		config.Delegation.Parent = "root"
	}
	if c.IntN(2) == 0 {
		config.Term.Approval = leadership.ApprovalPolicy{Every: pick(c, 5*time.Second, 15*time.Second), Need: c.IntN(3)}
	}
	return applies(leadership.Configure{Config: config})
}

// order gives an order of any kind, and then once more.
func (c *course) order(token leadership.Token) {
	cmd := leadership.Order{Kind: pick(c, slices.DeleteFunc(leadership.Orders(), leadership.OrderKind.Halts)...), Reason: "because", Actor: pick(c, "op1", "op2", "op3")}
	span := pick(c, time.Second, 10*time.Second, time.Minute)
	switch cmd.Kind {
	case leadership.OrderAssign, leadership.OrderBan:
		cmd.CandidateID, cmd.For = c.candidate(), span
	case leadership.OrderPause:
		cmd.For, cmd.Mode = span, pick(c, leadership.PauseFreeze, leadership.PauseDrain)
	case leadership.OrderEvict:
		cmd.Token, cmd.Ban = pick(c, 0, token), pick(c, 0, span)
	case leadership.OrderApprove:
		cmd.Token, cmd.For, cmd.NewEpoch = token, pick(c, 0, span), c.IntN(3) == 0
	case leadership.OrderLift:
		all := c.snap.Orders().List()
		if len(all) == 0 {
			return
		}
		cmd.Override = pick(c, all...).ID
	}
	before := c.snap
	if !c.again(string(cmd.Kind), applies(cmd)) {
		return
	}
	c.note(before, cmd)
}

// note keeps in mind what the order lets stand.
func (c *course) note(before rule.Snapshot, cmd leadership.Order) {
	switch cmd.Kind {
	case leadership.OrderAssign:
		c.orders["assign"] = order{leadership.OverrideAssign, cmd.CandidateID, before.Now.Add(cmd.For)}
	case leadership.OrderPause:
		c.orders["pause"] = order{leadership.OverridePause, "", before.Now.Add(cmd.For)}
	case leadership.OrderBan:
		delete(c.orders, "stepDown "+string(cmd.CandidateID))
		c.orders["ban "+string(cmd.CandidateID)] = order{leadership.OverrideBan, cmd.CandidateID, before.Now.Add(cmd.For)}
	case leadership.OrderEvict:
		if leader := before.Record.LeaderID; cmd.Ban > 0 {
			delete(c.orders, "stepDown "+string(leader))
			c.orders["ban "+string(leader)] = order{leadership.OverrideBan, leader, before.Now.Add(cmd.Ban)}
		}
	case leadership.OrderResume:
		delete(c.orders, "pause")
	case leadership.OrderApprove:
		c.awaited = c.awaited && c.snap.Record.Standing.Approval.Awaited
	case leadership.OrderLift:
		c.lifted(before, cmd.Override)
	}
}

func (c *course) lifted(before rule.Snapshot, id leadership.OverrideID) {
	for _, o := range before.Orders().List() {
		if o.ID != id {
			continue
		}
		switch {
		case o.Kind == leadership.OverrideCooldown:
			delete(c.orders, "cooldown "+string(o.CandidateID))
		case o.Kind != leadership.OverrideBan:
			delete(c.orders, string(o.Kind))
		case o.Actor == string(o.CandidateID):
			delete(c.orders, "stepDown "+string(o.CandidateID))
		default:
			delete(c.orders, "ban "+string(o.CandidateID))
		}
	}
}

// bars is what the observer knows to stand against a grant.
func (c *course) bars(candidate leadership.CandidateID, now time.Time) map[leadership.Reason]bool {
	bars := make(map[leadership.Reason]bool)
	for _, o := range c.orders {
		switch {
		case !now.Before(o.until):
		case o.kind == leadership.OverridePause:
			bars[leadership.ReasonPaused] = true
		case o.kind == leadership.OverrideAssign && o.candidate != candidate:
			bars[leadership.ReasonAssigned] = true
		case o.kind == leadership.OverrideBan && o.candidate == candidate:
			bars[leadership.ReasonBanned] = true
		}
	}
	if c.awaited && c.snap.Record.Policy.Term.Approval.Every > 0 {
		bars[leadership.ReasonApproval] = true
	}
	return bars
}

func (c *course) acquire() {
	id := c.candidate()
	cmd := rule.AcquireCommand{CandidateID: id, KeyHash: hash(byte(c.IntN(2)) + id[0]), LeaseDuration: pick(c, 0, time.Second, 20*time.Second)}
	c.candidacy(&cmd)
	c.acquireAs(cmd)
}

func (c *course) acquireAs(cmd rule.AcquireCommand) {
	before, id := c.snap, cmd.CandidateID
	if cmd.Parent = c.parentOf(before, cmd); cmd.Parent.Token > 0 {
		c.tally["parented"]++
	}
	c.parent = cmd.Parent
	c.voters.asks(before, cmd)
	err := c.do("acquire", func(s rule.Snapshot) (rule.Change, error) { return rule.Acquire(s, cmd) })
	why := rule.Explain(before, id)
	var e *leadership.Error
	if errors.As(err, &e) && e.Code == leadership.NotEligible {
		c.notEligible(before, cmd)
	}
	if !errors.As(err, &e) || e.Code != leadership.LeaseHeld {
		return
	}
	c.tally[string(e.Reason)]++
	switch {
	case e.Reason == leadership.ReasonParent:
		if p := cmd.Parent; before.Record.Policy.Delegation.Parent == "" || p.LeaderID != "" && before.Now.Before(p.Until) {
			c.fatalf("refused for want of a parent: %+v", p)
		}
		return
	case before.Live() && c.heir != incarnation{}:
		if c.heir == (incarnation{id, cmd.KeyHash}) && e.Reason == leadership.ReasonHeld && cmd.Role != leadership.RoleWitness {
			c.fatalf("the successor is refused: %v", err)
		}
		c.tally["heldBack"]++
		return
	}
	if e.Reason == leadership.ReasonBallot || e.Reason == leadership.ReasonOutranked || e.Reason == leadership.ReasonQuorum || e.Reason == leadership.ReasonWitness {
		c.waitsForBallot(before, cmd, e, why)
		return
	}
	if !why.Leads && (len(why.Causes) == 0 || why.Causes[0].Code != e.Reason) {
		c.fatalf("refused with %s, and explained as %+v", e.Reason, why)
	}
	held := e.Reason == leadership.ReasonHeld || e.Reason == leadership.ReasonIncarnation || e.Reason == leadership.ReasonLockDelay
	r := before.Record
	held = held || r.LeaderID != "" && !before.Live() && // its end is not recorded yet
		(e.Reason == leadership.ReasonApproval && r.EndsBecause == leadership.EndsApproval ||
			e.Reason == leadership.ReasonBanned && r.EndsBecause == leadership.EndsStuck && id == r.LeaderID)
	if late := before.Now.Add(-time.Millisecond); !held && !c.bars(id, late)[e.Reason] {
		c.fatalf("refused with %v, and nothing bars it: %+v", err, c.orders)
	}
}

func (c *course) renewWithReport(lease rule.Renewal) {
	before := c.report
	c.report.Progress += int64(c.IntN(2))
	c.report.Tasks += int64(c.IntN(2))
	c.report.Calls += int64(c.IntN(3))
	c.report.Errors = min(c.report.Errors+int64(c.IntN(2)), c.report.Calls)
	lease.Report, _ = c.report.Text()
	if c.do("report", func(s rule.Snapshot) (rule.Change, error) { return rule.Renew(s, lease) }) != nil {
		c.report = before
		return
	}
	at := c.snap
	ch, err := rule.Renew(at, lease)                                                      // as after a lost reply
	if err == nil && len(ch.Events) > 0 && ch.Events[0].Type != leadership.EventUpdated { // a probation may be over by now
		c.fatalf("a report that is sent again writes %+v", ch.Events)
	}
}

// again makes a call and, as after a lost reply, makes it once more. It reports whether the first
// has changed anything.
func (c *course) again(what string, rule decision) bool {
	before := c.snap
	if c.do(what, rule) != nil || c.snap.Record.Revision == before.Record.Revision {
		return false
	}
	if c.last = what + " again"; c.snap.Now.Equal(before.Now) {
		c.replay(rule)
	}
	if what == "judge" || what == "stepDown" || what == "release" {
		c.replays = append(c.replays[max(len(c.replays)-7, 0):], call{before.Record.Token, rule})
	}
	return true
}

// replay makes a call that was made before: it changes nothing.
func (c *course) replay(rule decision) {
	s := c.snap
	s.Now = s.Now.Add(time.Duration(c.IntN(2)) * 100 * time.Millisecond)
	ch, err := rule(s)
	lapsed := s.Record.LeaderID != "" && !s.Live()
	if err == nil && !ch.Empty() && !lapsed {
		c.fatalf("a repeated call writes %+v", ch.Events)
	}
	c.tally["repeated"]++
}

// do runs a rule, commits what it wants at once or a while later, and observes it.
func (c *course) do(what string, decide decision) error {
	c.last = what
	before := c.snap
	ch, carried, err := rule.Codec{}.Decide(c.snap, rule.Carried{}, decide)
	var e *leadership.Error
	switch {
	case err != nil && (!errors.As(err, &e) || e.Detail == "" || e.Code == leadership.RecordCorrupt):
		c.fatalf("%v", err)
	case err != nil || ch.Empty():
		return err
	}
	if c.IntN(8) == 0 {
		c.requireReadBack(ch.Record, carried)
	}
	if c.IntN(20) == 0 {
		c.wait() // while it is committed
	}
	c.snap.Record = ch.Committed(c.snap.Now)
	c.observe(before, ch)
	if !ch.Before.IsZero() && !c.snap.Now.Before(ch.Before) {
		c.tally["late"]++
		record := c.snap.Record
		c.do("lapse", func(s rule.Snapshot) (rule.Change, error) {
			return rule.Lapse(s, record.Token, record.HeartbeatAt, ch.Before)
		})
		return fmt.Errorf("late")
	}
	if c.snap.Record.LeaderID != "" {
		c.told = c.snap.Record.LeaseEnd()
	}
	return nil
}

func (c *course) requireReadBack(r rule.Record, carried rule.Carried) {
	read := rule.Record{Election: r.Election}
	if err := (rule.Codec{}).Decode(&read, carried); err != nil || read.Policy != r.Policy || read.Standing != r.Standing {
		c.fatalf("%+v is read back as %+v, %v", r, read, err)
	}
}

// observe holds a committed change to the promises.
func (c *course) observe(before rule.Snapshot, ch rule.Change) {
	r := c.snap.Record
	if err := rule.VerifyAlone(c.snap); err != nil {
		c.fatalf("%v", err)
	}
	c.voted(before, ch)
	c.observeParent(before)
	consent := false
	for _, e := range ch.Events {
		c.tally[string(e.Type)]++
		c.observeEvent(before, e)
		consent = consent || e.Type == leadership.EventReleased || e.Type == leadership.EventUnlocked || e.Type == leadership.EventYielded
		if e.Type == leadership.EventAcquired {
			c.granted(before, r)
			return
		}
	}
	switch {
	case before.Record.LeaderID == "":
		if consent {
			c.freeFrom = time.Time{}
		}
	case r.LeaderID == "":
		if c.freeFrom = c.told; consent {
			c.freeFrom = time.Time{}
		}
		c.ready, c.heir = incarnation{}, incarnation{}
	case c.heir != incarnation{} && ch.Heartbeat:
		c.fatalf("the leader has yielded, and leads on")
	case r.LeaseEnd().Before(c.told) && !consent:
		c.fatalf("the lease was to end at %v, and ends at %v", c.told, r.LeaseEnd())
	}
}

func (c *course) observeEvent(before rule.Snapshot, e leadership.Event) {
	policy := before.Record.Policy.Term
	switch e.Type {
	case leadership.EventYielded:
		if c.heir = c.ready; c.heir == (incarnation{}) || !strings.Contains(e.Detail, string(c.heir.id)) {
			c.fatalf("yielded, and %+v is ready: %s", c.ready, e.Detail)
		}
	case leadership.EventDeposed:
		at := before.Now
		if !before.Live() || c.last == "lapse" {
			at = before.Record.LeaseEnd()
		}
		if leader := e.PreviousLeaderID; policy.Cooldown > 0 {
			until := at.Add(policy.Cooldown)
			for _, o := range c.snap.Orders().List() { // it may have doubled
				if o.Kind == leadership.OverrideCooldown && o.CandidateID == leader && o.Until.After(until) {
					until = o.Until
				}
			}
			c.orders["cooldown "+string(leader)] = order{leadership.OverrideBan, leader, until}
		}
		if e.Reason == "" || e.Detail == "" {
			c.fatalf("deposed without a reason: %+v", e)
		}
	case leadership.EventExpired:
		if before.Record.EndsBecause == leadership.EndsApproval && e.Detail != "" && policy.Approval.Every > 0 {
			c.awaited = true
		}
	case leadership.EventReleased:
		if strings.Contains(e.Detail, `"endsBecause":"approval"`) {
			c.awaited = true
		}
		if leader := e.PreviousLeaderID; strings.Contains(e.Detail, `"endsBecause":"stuck"`) {
			for _, o := range c.snap.Orders().List() {
				if o.Kind == leadership.OverrideCooldown && o.CandidateID == leader {
					c.orders["cooldown "+string(leader)] = order{leadership.OverrideBan, leader, o.Until}
				}
			}
		}
		if strings.Contains(e.Detail, `"override"`) {
			c.orders["stepDown "+string(e.PreviousLeaderID)] = order{leadership.OverrideBan, e.PreviousLeaderID, before.Now.Add(20 * time.Second)}
		}
	}
}

// granted is observed at each grant to another key.
func (c *course) granted(before rule.Snapshot, r rule.Record) {
	free := c.freeFrom
	if before.Record.LeaderID != "" {
		free = c.told
	}
	successor := before.Live() && c.heir == incarnation{r.LeaderID, r.KeyHash} && c.heir != incarnation{}
	if before.Now.Before(free) && !successor {
		c.fatalf("granted, and the leader before may believe until %v", free)
	}
	if successor {
		c.tally["takenOver"]++
	}
	c.ready, c.heir = incarnation{}, incarnation{}
	if bars := c.bars(r.LeaderID, before.Now); len(bars) > 0 {
		c.fatalf("granted against %v: %+v", bars, c.orders)
	}
	c.report, c.awaited, c.told = leadership.Report{}, false, time.Time{}
}

// move goes on in another store, whose clock is another one.
func (c *course) move() {
	ahead := time.Duration(c.IntN(2000)-1000) * time.Second
	old := c.snap
	c.snap = rule.Snapshot{Record: rule.Record{Election: "jobs"}, Now: old.Now.Add(ahead), Guard: guard}
	c.last = "carry"
	ch, err := rule.Carry(c.snap, rule.CarryCommand{From: old})
	if err != nil || ch.Empty() {
		c.fatalf("%v", err)
	}
	if old.Record.LeaderID != "" {
		c.freeFrom = c.told
		if !old.Live() && old.Record.EndsBecause == leadership.EndsApproval && ch.Record.Standing.Approval.Awaited {
			c.awaited = true
		}
	}
	c.snap.Record = ch.Record
	c.ready, c.heir, c.parentEnd = incarnation{}, incarnation{}, time.Time{}
	c.voters = newVoters()
	c.freeFrom = c.freeFrom.Add(ahead)
	for name, o := range c.orders {
		o.until = o.until.Add(ahead)
		c.orders[name] = o
	}
	for _, o := range c.snap.Orders().List() {
		if name := "cooldown " + string(o.CandidateID); o.Kind == leadership.OverrideCooldown && c.orders[name].candidate == "" {
			c.orders[name] = order{leadership.OverrideBan, o.CandidateID, o.Until}
		}
	}
	c.tally["carried"]++
	if again, err := rule.Carry(c.snap, rule.CarryCommand{From: old}); err != nil || !again.Empty() {
		c.fatalf("carried again it changes: %+v, %v", again, err)
	}
}
