package checker_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"regent/leadership"
	"regent/store/memory"
	"regent/test/checker"
)

// fleet is clients that call a real service on a store in memory, one after the other, in simulated
// time. What it records is true.
type fleet struct {
	Clients, Elections, Calls int
	Lost                      float64       // of the replies
	Guard                     time.Duration // of the store; if there is one, a commit takes a while
	Orders                    bool          // operators and verifiers act, and leaders report
	Ballots                   bool          // policies say who should lead
	Succession                bool          // leaders hand over, and leases stand on others
	Seed                      uint64
}

const ms = time.Millisecond

// run lets the clients call, and returns what was recorded.
func (f fleet) run(tb testing.TB) checker.Recording {
	tb.Helper()
	w := &scene{fleet: f, tb: tb, rng: rand.New(rand.NewPCG(f.Seed, 6)), sentences: make(map[leadership.Election]string), newest: make(map[leadership.Election]leadership.Token)}
	store := memory.New(memory.Config{Now: w.instant})
	w.store = store
	w.service = leadership.New(store)
	if f.Guard > 0 {
		w.service = leadership.New(&cloud{Store: store, guard: f.Guard, scene: w})
	}
	for i := range f.Clients {
		w.clients = append(w.clients, &client{name: fmt.Sprintf("client-%d", i), free: time.Duration(w.rng.Int64N(int64(50 * ms)))})
	}
	for range f.Calls {
		w.turn()
	}
	for _, p := range w.pending {
		w.now = max(w.now, p.at)
		p.do()
	}
	for _, c := range w.clients {
		w.stop(c, w.now)
	}
	w.recorded.History = w.history()
	return w.recorded
}

// scene is the surroundings of a fleet.
type scene struct {
	fleet
	tb        testing.TB
	rng       *rand.Rand
	now       time.Duration
	store     *memory.Store
	service   *leadership.Service
	recorded  checker.Recording
	clients   []*client
	pending   []late
	requests  int
	newest    map[leadership.Election]leadership.Token // that the guarded place has seen
	sentences map[leadership.Election]string           // that the last refusal to unlock it asked for
}

// late is a request that is done after its caller has given up.
type late struct {
	at time.Duration
	do func()
}

func (w *scene) instant() time.Time { return begin.Add(w.now) }

// client is one who calls.
type client struct {
	name     string
	free     time.Duration // when its last call was answered
	election leadership.Election
	id       leadership.CandidateID
	key      leadership.Key
	token    leadership.Token // that it holds; 0 if none
	since    time.Duration    // it believes
	until    time.Duration
	buried   bool // it was told that the election is deleted
	seen     leadership.Token
	mine     leadership.Token // that it held last
	done     int64            // progress, as it reports it
	hands    leadership.Succession
}

// turn makes one call, of the agent that is free first.
func (w *scene) turn() {
	c := slices.MinFunc(w.clients, func(a, b *client) int { return cmp.Compare(a.free, b.free) })
	asked := c.free + time.Duration(w.rng.Int64N(int64(400*ms)))
	w.now = max(w.now, asked+time.Duration(w.rng.Int64N(int64(30*ms))))
	for len(w.pending) > 0 && w.pending[0].at <= w.now {
		p := w.pending[0]
		w.pending = w.pending[1:]
		p.do()
	}
	if w.rng.IntN(8) == 0 {
		w.service.Expire(w.tb.Context(), w.pick()) //nolint:errcheck // a refusal is as good a step as a change
	}
	call := w.choose(c, asked)
	w.send(c, call)
}

func (w *scene) pick() leadership.Election {
	return leadership.Election(fmt.Sprintf("planner-%d", w.rng.IntN(w.Elections)))
}

// choose is what the client does next.
func (w *scene) choose(c *client, asked time.Duration) checker.Call {
	if c.id == "" || c.token == 0 && w.rng.IntN(60) == 0 {
		c.seen, c.mine = 0, 0
		c.election, c.id, c.key = w.pick(), leadership.CandidateID(fmt.Sprintf("agent-%d", w.rng.IntN(1+w.Clients/2))), w.key()
	}
	if c.token > 0 && asked >= c.until {
		w.stop(c, c.until)
	}
	w.requests++
	call := checker.Call{Caller: c.name, Request: fmt.Sprintf("r-%d", w.requests), Election: c.election, Candidate: c.id, Key: c.key.Hash(), Token: c.token, Asked: asked}
	switch n := w.rng.IntN(1000); {
	case n < 60:
		call.Verb = checker.Get
	case n < 120:
		call.Verb, call.Token = checker.Check, max(1, c.token)
	case n < 123, c.buried && n < 400:
		call.Verb, call.Config = checker.Configure, leadership.Config{LeaseDuration: time.Duration(1+w.rng.IntN(3)) * s, LockDelay: time.Duration(w.rng.IntN(3)) * 300 * ms}
		call.If = []leadership.Revision{0, 0, 4, leadership.NeverSeen}[w.rng.IntN(4)]
		if w.Orders {
			call.Config.Term = w.policy()
		}
		if w.Ballots {
			call.Config.Ballot = w.ballot()
		}
		if w.Succession {
			call.Config.Promotion = w.rng.IntN(3) == 0
			if c.election == "planner-1" && w.rng.IntN(2) > 0 {
				call.Config.LeadersOf = "planner-0"
			}
		}
	case n < 125:
		call.Verb, call.Force = checker.Delete, w.rng.IntN(2) == 0
	case n < 128: // with what the last refusal asked for, which may not be enough any more
		call.Verb, call.Acknowledge = checker.Unlock, w.sentences[c.election]
	case w.Orders && n < 160:
		w.order(c, &call)
	case w.Orders && n < 175 && c.token > 0:
		call.Verb, call.Reason = checker.RequestApproval, "may I go on?"
	case w.Orders && n < 185 && c.token > 0:
		call.Verb, call.Reason, call.For = checker.StepDown, "it has nothing to do", []time.Duration{0, s, 3 * s}[n%3]
		w.stop(c, asked)
	case w.Succession && c.token == 0 && (n > 900 || n > 300 && c.hands.To == c.id && !c.hands.Ready):
		call.Verb, call.Token = checker.Ready, max(1, c.seen)
	case w.Succession && c.token > 0 && n < 700 && c.hands.Ready:
		call.Verb = checker.Yield
		w.stop(c, call.Asked)
	case w.Succession && c.token > 0 && n < 250:
		w.handOver(c, &call)
	case c.token == 0 && c.seen > 0 && n < 300: // too late, or with a lease that is not its own
		call.Token = cmp.Or(c.mine, c.seen)
		call.Verb = []checker.Verb{checker.Renew, checker.Renew, checker.Release}[n%3]
	case c.token == 0:
		call.Verb, call.Lease = checker.Acquire, []time.Duration{0, 0, s, 2 * s}[w.rng.IntN(4)]
		call.Metadata = []leadership.Metadata{"", "", `{"at":"here"}`}[w.rng.IntN(3)]
		if w.Ballots {
			call.Candidacy = candidacyOf(c.id)
		}
		call.Via = w.via(c)
	case n < 920:
		call.Verb = checker.Renew
		if w.Orders && n%3 == 0 {
			c.done += int64(n % 2)
			call.Report = leadership.ReportText(fmt.Sprintf(`{"progress":%d,"tokensUsed":%d}`, c.done+1, 10*c.done+1))
		}
	case n < 940:
		call.Verb, call.Lease, call.Metadata = checker.Acquire, 3*s, `{"at":"there"}`
		if w.Ballots {
			call.Candidacy = candidacyOf(c.id)
		}
	default:
		call.Verb = checker.Release
		w.stop(c, asked)
	}
	return call
}

// handOver is a step of a leader that hands over.
func (w *scene) handOver(c *client, call *checker.Call) {
	switch w.rng.IntN(5) {
	case 0:
		call.Verb, call.Within = checker.HandOver, time.Duration(1+w.rng.IntN(4))*s
		for _, other := range w.clients {
			if other.election == c.election && other.id != c.id && (call.To == "" || w.rng.IntN(3) == 0) {
				call.To = other.id
			}
		}
		if call.To == "" {
			call.To = "agent-9"
		}
	case 1:
		call.Verb = checker.Ready
	case 2:
		call.Verb, call.Write = checker.Check, true
	case 3:
		call.Verb = checker.Yield
		w.stop(c, call.Asked)
	default:
		call.Verb = checker.Renew
	}
}

// via is the lease that the candidate holds elsewhere.
func (w *scene) via(c *client) (v leadership.Via) {
	for _, other := range w.clients {
		if c.election == "planner-1" && other.election == "planner-0" && other.id == c.id && other.token > 0 {
			v = leadership.Via{Election: other.election, Token: other.token}
		}
	}
	return v
}

// ballot is a policy that some candidates are not good enough for.
func (w *scene) ballot() (p leadership.BallotPolicy) {
	p.Strategy = leadership.Strategies()[w.rng.IntN(len(leadership.Strategies()))]
	p.Window = []time.Duration{0, 0, leadership.NoWindow, s}[w.rng.IntN(4)]
	if w.rng.IntN(3) == 0 {
		p.Require = leadership.NewNames("gpu")
	}
	switch p.Strategy {
	case leadership.StrategyCapability:
		p.Prefer = leadership.NewNames("fast", "near")
		fallthrough
	case leadership.StrategyPriority, leadership.StrategyLeastLoaded:
		if p.Preempt = w.rng.IntN(2) == 0; p.Preempt && w.rng.IntN(2) == 0 {
			p.MinTerm = 2 * s
		}
	}
	if p.Window != leadership.NoWindow && w.rng.IntN(4) == 0 {
		p.Quorum = leadership.QuorumPolicy{Electorate: leadership.NewNames("agent-0", "agent-1", "agent-2")}
	}
	return p
}

// candidacyOf is what a candidate always says of itself.
func candidacyOf(id leadership.CandidateID) (c leadership.Candidacy) {
	n := int64(id[len(id)-1] - '0')
	c.Priority, c.Load = n%3, (7-n)%4
	if n%4 > 0 {
		c.Capabilities = leadership.NewNames([]string{"gpu", "fast", "near"}[:n%4]...)
	}
	if n == 4 {
		c.Role = leadership.RoleWitness
	}
	return c
}

// policy is limits that a short run comes to.
func (w *scene) policy() (p leadership.TermPolicy) {
	some := func(of ...time.Duration) time.Duration { return of[w.rng.IntN(len(of))] }
	p.MaxTerm, p.StuckAfter, p.Cooldown = some(0, 0, 8*s), some(0, 6*s), some(0, 2*s)
	if p.Approval.Every = some(0, 0, 5*s); p.Approval.Every > 0 {
		p.Approval.Need = 1 + w.rng.IntN(2)
	}
	p.Budget.TokensUsed, p.Verdicts = []int64{0, 21, 51}[w.rng.IntN(3)], w.rng.IntN(3)
	if w.rng.IntN(4) == 0 {
		p.OnTrip = leadership.TripNotify
	}
	return p
}

// order is what an operator or a verifier does.
func (w *scene) order(c *client, call *checker.Call) {
	call.Candidate, call.Key, call.Token = "", leadership.KeyHash{}, 0
	o := leadership.OrderCommand{Reason: "it has to be", Actor: []string{"ann", "bob", "cy"}[w.rng.IntN(3)]}
	who, d := leadership.CandidateID(fmt.Sprintf("agent-%d", w.rng.IntN(1+w.Clients/2))), time.Duration(1000+w.rng.IntN(3000))*ms
	switch w.rng.IntN(12) {
	case 0:
		o.Kind, o.CandidateID, o.For = leadership.OrderAssign, who, d
	case 1:
		o.Kind, o.Ban = leadership.OrderEvict, []time.Duration{0, d}[w.rng.IntN(2)]
	case 2:
		o.Kind, o.For, o.Mode = leadership.OrderPause, d, []leadership.PauseMode{leadership.PauseFreeze, leadership.PauseDrain}[w.rng.IntN(2)]
	case 3:
		o.Kind = leadership.OrderResume
	case 4:
		o.Kind, o.CandidateID, o.For = leadership.OrderBan, who, d
	case 5:
		o.Kind, o.Override = leadership.OrderLift, leadership.OverrideID(fmt.Sprintf("cooldown-%d-%s", max(1, c.seen), who))
	case 6, 7, 8:
		o.Kind, o.Token, o.NewEpoch = leadership.OrderApprove, max(1, c.seen), w.rng.IntN(3) == 0
		o.Reason = fmt.Sprintf("it is fine, %d", w.rng.IntN(1000))
	default:
		call.Verb, call.Token, call.Actor, call.Reason = checker.Judge, max(1, c.seen), o.Actor, "as it seems"
		call.Verdict = []leadership.Verdict{leadership.VerdictBad, leadership.VerdictGood}[w.rng.IntN(2)]
		return
	}
	call.Verb, call.Order = checker.Order, o
}

func (w *scene) key() (k leadership.Key) {
	for i := range k {
		k[i] = byte(w.rng.Uint32())
	}
	return k
}

// send makes the call, or loses it or its reply.
func (w *scene) send(c *client, call checker.Call) {
	if w.rng.Float64() < w.Lost {
		call = w.lose(c, call)
	} else {
		call = w.do(c, call)
		call.Answered = w.now + time.Duration(w.rng.Int64N(int64(30*ms)))
		c.free = call.Answered
		if call.Code == leadership.LeaseHeld {
			c.free += time.Duration(w.rng.Int64N(int64(2 * s)))
			if w.Ballots && w.rng.IntN(3) > 0 {
				c.free = call.Answered + min(call.Again, 2*s)
			}
		}
		c.buried = call.Code == leadership.ElectionDeleted
		w.learn(c, call)
	}
	w.recorded.Calls = append(w.recorded.Calls, call)
	if call.Verb == checker.Release || call.Verb == checker.StepDown || call.Verb == checker.Yield {
		c.id, c.token = "", 0 // its key is spent
	}
	if c.token > 0 && call.Asked < c.until && w.rng.IntN(3) == 0 {
		w.write(c, call.Asked)
	}
}

func (w *scene) lose(c *client, call checker.Call) checker.Call {
	asked := call
	c.free = w.now + time.Duration(w.rng.Int64N(int64(300*ms)))
	switch w.rng.IntN(3) {
	case 0: // it never arrived
	case 1:
		w.do(c, asked)
	default:
		key := c.key
		w.pending = append(w.pending, late{w.now + time.Duration(w.rng.Int64N(int64(s))), func() { w.do(&client{key: key}, asked) }})
		slices.SortStableFunc(w.pending, func(a, b late) int { return cmp.Compare(a.at, b.at) })
	}
	call.Code, call.Answered = leadership.OutcomeUnknown, c.free
	if w.rng.IntN(2) == 0 {
		call.Answered = checker.Forever
	}
	return call
}

// do makes the call and fills in what came of it.
func (w *scene) do(c *client, call checker.Call) checker.Call {
	ctx := leadership.WithRequestID(w.tb.Context(), call.Request)
	lease, err := w.call(ctx, c, call)
	refusal, refused := errors.AsType[*leadership.Error](err)
	switch {
	case err == nil:
		call.Answer = &lease
	case refused:
		call.Code, call.Answer, call.Because, call.Again = refusal.Code, refusal.Lease, refusal.Reason, refusal.RetryAfter
		if call.Verb == checker.Unlock && w.sentences != nil {
			_, w.sentences[call.Election], _ = strings.Cut(refusal.Detail, "with exactly this acknowledge: ")
		}
	default:
		w.tb.Fatal(err)
	}
	return call
}

func (w *scene) call(ctx context.Context, c *client, call checker.Call) (leadership.Lease, error) {
	named := leadership.LeaseRequest{Election: call.Election, CandidateID: call.Candidate, Key: c.key, Token: call.Token}
	switch call.Verb {
	case checker.Acquire:
		g, err := w.service.Acquire(ctx, leadership.AcquireRequest{
			Election: call.Election, CandidateID: call.Candidate, Key: &c.key, LeaseDuration: call.Lease, Metadata: []byte(call.Metadata), Candidacy: call.Candidacy, Via: call.Via,
		})
		return g.Lease, err
	case checker.Renew:
		named.Report = []byte(call.Report)
		return w.service.Renew(ctx, named)
	case checker.Order:
		return w.service.Order(ctx, leadership.OrderRequest{Election: call.Election, OrderCommand: call.Order})
	case checker.Judge:
		return w.service.Judge(ctx, leadership.JudgeRequest{Election: call.Election, JudgeCommand: leadership.JudgeCommand{
			Token: call.Token, Verdict: call.Verdict, Evidence: call.Reason, Actor: call.Actor,
		}})
	case checker.StepDown:
		return w.service.StepDown(ctx, leadership.StepDownRequest{LeaseRequest: named, Reason: call.Reason, For: call.For})
	case checker.RequestApproval:
		return w.service.RequestApproval(ctx, leadership.ApprovalNote{LeaseRequest: named, Note: call.Reason})
	case checker.Release:
		return w.service.Release(ctx, named)
	case checker.Check:
		return w.service.CheckToken(ctx, leadership.TokenCheck{Election: call.Election, Token: call.Token, Write: call.Write})
	case checker.HandOver:
		return w.service.HandOver(ctx, leadership.HandOverRequest{LeaseRequest: named, To: call.To, Within: call.Within, Reason: call.Reason})
	case checker.Ready:
		return w.service.SayReady(ctx, leadership.LeaseRequest{Election: call.Election, CandidateID: call.Candidate, Key: c.key, Token: call.Token})
	case checker.Delegate:
		parent := string(call.Election) + "."
		return w.service.Delegate(ctx, leadership.DelegateRequest{LeaseRequest: named, Child: strings.TrimPrefix(string(call.Child), parent), Limits: call.Limits})
	case checker.Yield:
		return w.service.Yield(ctx, named)
	case checker.Get:
		return w.service.Get(ctx, call.Election)
	case checker.Configure:
		return w.service.Configure(ctx, leadership.ConfigureRequest{
			Election: call.Election, ConfigureCommand: leadership.ConfigureCommand{Config: call.Config, IfRevision: call.If},
		})
	}
	if call.Verb == checker.Unlock {
		return w.service.Unlock(ctx, leadership.UnlockRequest{
			Election: call.Election, UnlockCommand: leadership.UnlockCommand{Reason: "it hangs", Actor: "olga", Acknowledge: call.Acknowledge},
		})
	}
	return w.service.Delete(ctx, leadership.DeleteRequest{Election: call.Election, DeleteCommand: leadership.DeleteCommand{Force: call.Force}})
}

// learn is what the client makes of an answer.
func (w *scene) learn(c *client, call checker.Call) {
	if call.Answer != nil {
		c.seen, c.hands = call.Answer.Token, call.Answer.Succession
	}
	beat := call.Verb == checker.Acquire || call.Verb == checker.Renew
	switch {
	case !beat:
	case call.Code == "":
		if c.token == 0 {
			c.since, c.done = call.Answered, 0
		}
		c.mine = call.Answer.Token
		c.token, c.until = call.Answer.Token, leadership.Deadline(call.Asked, 0, call.Answer.ExpiresIn, 0)
		if c.since > c.until {
			c.token = 0
		}
	case call.Code == leadership.LeaseLost:
		w.stop(c, min(call.Answered, c.until))
	}
}

// stop ends a belief.
func (w *scene) stop(c *client, at time.Duration) {
	if c.token > 0 && min(at, c.until) > c.since {
		w.recorded.Beliefs = append(w.recorded.Beliefs, checker.Belief{Who: c.name, Election: c.election, Token: c.token, From: c.since, Until: min(at, c.until)})
	}
	c.token = 0
}

func (w *scene) write(c *client, at time.Duration) {
	newest := w.newest[c.election]
	w.recorded.Writes = append(w.recorded.Writes, checker.Write{Who: c.name, Election: c.election, Token: c.token, Newest: newest, Admitted: c.token >= newest, At: at})
	w.newest[c.election] = max(newest, c.token)
}

func (w *scene) history() (all []leadership.Event) {
	for i := range w.Elections {
		events, err := w.store.Events(w.tb.Context(), leadership.Election(fmt.Sprintf("planner-%d", i)), 0, 1<<30)
		if err != nil {
			w.tb.Fatal(err)
		}
		all = append(all, events...)
	}
	return all
}

// cloud is a store whose servers' clocks may differ, and whose commits come some time after what
// they stand on was read.
type cloud struct {
	*memory.Store
	guard time.Duration
	scene *scene
}

func (c *cloud) Get(ctx context.Context, e leadership.Election) (leadership.Snapshot, error) {
	snap, err := c.Store.Get(ctx, e)
	snap.Guard = c.guard
	return snap, err
}

func (c *cloud) Update(ctx context.Context, e leadership.Election, decide func(leadership.Snapshot) (leadership.Change, error)) (leadership.Snapshot, error) {
	snap, err := c.Get(ctx, e)
	if err != nil {
		return snap, err
	}
	ch, err := decide(snap)
	if err != nil || ch.Empty() {
		return snap, err
	}
	c.scene.now += time.Duration(c.scene.rng.Int64N(int64(20 * ms)))
	snap, err = c.Store.Update(ctx, e, func(leadership.Snapshot) (leadership.Change, error) { return ch, nil })
	snap.Guard = c.guard
	return snap, err
}

func (c *cloud) Renew(ctx context.Context, leases []leadership.Renewal) []leadership.Renewed {
	answers := make([]leadership.Renewed, len(leases))
	for i := range answers {
		answers[i].Err = leadership.ErrNotRenewed
	}
	return answers
}
