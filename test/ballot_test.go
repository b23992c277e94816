package test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"regent/emulators"
	"regent/leadership"
	"regent/leadership/boottime"
	"regent/leadership/instance"
	"regent/leadership/instance/pubsub"
	"regent/store/firestore"
	"regent/store/spanner"
	"regent/store/storetest"
	"regent/test/checker"
	"regent/test/machine"
	"regent/test/proxy"
)

// takeovers is how many changes of leader each fleet makes in the tests of ballots.
var takeovers = flag.Int("takeovers", 0, "how many changes of leader each fleet makes in the tests of ballots; 0: 8, and in the long form 60")

// Two and three instances, candidates that come and go, of random priorities, and bidders and
// instances that die: in every change of leader the winner is the best bidder alive of those whose
// bids were in. An observer between the instances and the store records each bid and each grant.
// How long it takes, beside firstCome, is reported.
func TestTheBestBidderAliveLeadsAfterEveryTakeover(t *testing.T) {
	machine.Share(t)
	for _, c := range []struct {
		name      string
		open      func(testing.TB) opening
		instances int
	}{
		{"firestore, two instances", inFirestoreHere, 2},
		{"firestore, three instances", inFirestoreHere, 3},
		{"spanner, two instances", inSpannerHere, 2},
		{"spanner, three instances", inSpannerHere, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() {
				t.Parallel()
			}
			f := newFleet(t, c.open(t), c.instances)
			n := *takeovers
			if n == 0 {
				n = machine.Size(8, 60)
			}
			// the long window is for a machine on which events arrive late
			p := leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: machine.Size(time.Second, leadership.DefaultWindow)}
			first := f.run("first", leadership.BallotPolicy{}, min(n, machine.Size(4, 100)), false)
			best := f.run("best", p, n, true)
			t.Logf("%s\nfirst come: %v\nby ballot, with a window of %v: %v", c.name, first, p.Window, best)
			if best.several == 0 {
				t.Errorf("no ballot had two bids: %+v", best)
			}
		})
	}
}

// Ten instances bid on one document of Firestore. Of the bids, each of which is a commit, only
// those are written that are of use; what collides is done again.
func TestTenInstancesOnOneDocumentElectByOneBallot(t *testing.T) {
	machine.Share(t)
	const instances = 10
	rounds := machine.Size(2, 10)
	counter := proxy.NewCounter(t, emulators.Firestore(t))
	f := newFleet(t, atFirestoreHere(t, counter.Addr()), instances)
	p := leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: machine.Size(time.Second, leadership.DefaultWindow)}
	e := f.begin("ten", p)
	for round := range rounds {
		for i := range instances {
			f.join(e, i, fmt.Sprintf("r%02d-c%02d", round, i), int64((i*7+round)%instances))
		}
		f.settle(e, instances)
		counter.Take()
		grant := f.handOver(e, func() {})
		calls := counter.Take()
		open := grant.seen.Now.Sub(grant.seen.Record.Standing.Opened) // by the clock of the store
		t.Logf("round %d: the ballot was open for its window of %v and %v more; granted %v after the release; %d bids, calls of the store: %v",
			round, p.Window, (open - p.Window).Round(time.Millisecond), (grant.ended - f.released).Round(time.Millisecond), f.bids(grant), calls)
		// A commit is refused only because another one was done since its read.
		if done := f.writes(e); calls["Commit"] > done*instances {
			t.Errorf("round %d: %d commits for %d changes", round, calls["Commit"], done)
		}
		f.judge(e, grant)
		f.dismiss(e)
	}
	f.history(e, rounds+1)
}

// Many candidates of different priorities wait at two instances. A change of leader costs as many
// calls of the store as if one candidate waited at each.
func TestManyCandidatesCostATakeoverAsManyCallsAsTwo(t *testing.T) {
	machine.Share(t)
	f := newFleet(t, inFirestoreHere(t), 2)
	p := leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: machine.Size(time.Second, leadership.DefaultWindow)}
	e := f.begin("crowd", p)
	random := rand.New(rand.NewPCG(16, 3))
	begun := boottime.Now()
	for i := range *crowded {
		f.join(e, i%2, fmt.Sprintf("c%05d", i), random.Int64N(1000))
	}
	f.settle(e, *crowded)
	t.Logf("%d candidates are in line after %v", *crowded, boottime.Now()-begun)
	rounds := machine.Size(3, 20)
	for round := range rounds {
		grant := f.handOver(e, func() {})
		calls := f.updates(e)
		t.Logf("takeover %d: %d transactions, %d bids, %v", round, calls, f.bids(grant), grant.ended-f.released)
		// a release, a bid and one more attempt at each instance, and the grant; twice if the
		// machine is so slow that bids are made again
		if most := 2 * (1 + 2*len(f.sites) + 1); calls > most {
			t.Errorf("takeover %d: %d transactions, want %d at most", round, calls, most)
		}
		f.judge(e, grant)
	}
	f.dismiss(e)
	f.history(e, rounds+1)
}

// opening opens one more handle on the same data.
type opening func() leadership.Store

func inFirestoreHere(t testing.TB) opening {
	t.Helper()
	return atFirestoreHere(t, emulators.Firestore(t))
}

func atFirestoreHere(t testing.TB, host string) opening {
	t.Helper()
	c := firestore.Config{Project: emulators.Name(t), Emulator: host}
	return func() leadership.Store {
		return opened(t, func() (leadership.Store, error) { return firestore.Open(t.Context(), c) })
	}
}

func inSpannerHere(t testing.TB) opening {
	t.Helper()
	c := spanner.Config{Database: fmt.Sprintf("projects/%s/instances/test/databases/regent", emulators.Name(t)), EmulatorHost: emulators.Spanner(t)}
	if err := spanner.Migrate(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return func() leadership.Store {
		return opened(t, func() (leadership.Store, error) { return spanner.Open(t.Context(), c) })
	}
}

func opened(t testing.TB, open func() (leadership.Store, error)) leadership.Store {
	t.Helper()
	s, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// site is an instance in this process.
type site struct {
	inst *instance.Instance
	cut  atomic.Int64 // since when it does not reach the store; 0 if it does
}

// attempt is a transaction that a site has begun, as the observer sees it.
type attempt struct {
	site                  int
	began, decided, ended time.Duration
	seen                  leadership.Snapshot // by the last decision
	change                leadership.Change
	err                   error
}

func (a attempt) writes() bool { return a.err == nil && !a.change.Empty() }

// won reports whether a lease was granted.
func (a attempt) won() bool { return a.writes() && a.change.Record.Token > a.seen.Record.Token }

// bidder is a candidate at a site.
type bidder struct {
	site     int
	priority int64
	key      leadership.Key
	cancel   context.CancelFunc
	killed   time.Duration // when its connection was cut; 0 if it was not
}

// fleet is several instances, with the observer.
type fleet struct {
	t     testing.TB
	sites []*site
	waits sync.WaitGroup

	missed   machine.Excuses // turns that the best bidder missed because of the machine
	released time.Duration   // when the last release began
	stall    atomic.Int64    // the longest time for which this process stood still, since the release

	mu       sync.Mutex // guards all below
	under    map[*attempt]leadership.Election
	attempts map[leadership.Election][]attempt // since the last release
	grants   map[leadership.Election]chan attempt
	bidders  map[leadership.CandidateID]*bidder
	leader   map[leadership.Election]leadership.LeaseRequest
	leads    map[leadership.Election]int // the site of the leader
	calls    []checker.Call
}

func newFleet(t testing.TB, open opening, n int) *fleet {
	t.Helper()
	f := &fleet{
		t: t, under: make(map[*attempt]leadership.Election), attempts: make(map[leadership.Election][]attempt), grants: make(map[leadership.Election]chan attempt),
		bidders: make(map[leadership.CandidateID]*bidder), leader: make(map[leadership.Election]leadership.LeaseRequest), leads: make(map[leadership.Election]int),
	}
	on := newTopic(t)
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	for i := range n {
		bus, err := pubsub.Open(ctx, pubsub.Config{Topic: on.name, Instance: fmt.Sprint("site-", i), Emulator: on.host})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { bus.Close() })
		s := &site{}
		seen := &storetest.Fake{Store: open(), Around: func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
			return f.observe(ctx, i, c, next)
		}}
		if s.inst, err = instance.New(instance.Config{Store: seen, Name: fmt.Sprint("site-", i), Bus: bus}); err != nil {
			t.Fatal(err)
		}
		f.sites = append(f.sites, s)
		running.Go(func() { s.inst.Run(ctx) })
	}
	running.Go(func() { f.watchStalls(ctx) })
	t.Cleanup(func() { f.waits.Wait(); end(); running.Wait() })
	t.Cleanup(func() { f.missed.Check(t) })
	t.Cleanup(f.dismissAll)
	for _, s := range f.sites {
		for s.inst.Degraded() != "" {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-t.Context().Done():
				t.Fatal(s.inst.Degraded())
			}
		}
	}
	return f
}

// watchStalls notes for how long this process stands still, as on a busy machine.
func (f *fleet) watchStalls(ctx context.Context) {
	const tick = 10 * time.Millisecond
	for last := boottime.Now(); ; {
		select {
		case <-time.After(tick):
		case <-ctx.Done():
			return
		}
		now := boottime.Now()
		f.late(now - last - tick)
		last = now
	}
}

func (f *fleet) late(by time.Duration) {
	for {
		most := f.stall.Load()
		if int64(by) <= most || f.stall.CompareAndSwap(most, int64(by)) {
			return
		}
	}
}

// observe stands between an instance and the store.
func (f *fleet) observe(ctx context.Context, i int, c storetest.Call, next func(context.Context) error) error {
	if f.sites[i].cut.Load() > 0 {
		return fmt.Errorf("%w: the instance is cut off", leadership.StoreUnavailable)
	}
	if c.Method != "Update" {
		return next(ctx)
	}
	a := attempt{site: i, began: boottime.Now()}
	f.mu.Lock()
	f.under[&a] = c.Election
	f.mu.Unlock()
	decide := *c.Decide
	*c.Decide = func(s leadership.Snapshot) (ch leadership.Change, err error) {
		a.decided, a.seen = boottime.Now(), s
		a.change, err = decide(s)
		return a.change, err
	}
	a.err = next(ctx)
	a.ended = boottime.Now()
	f.mu.Lock()
	delete(f.under, &a)
	f.attempts[c.Election] = append(f.attempts[c.Election], a)
	granted := f.grants[c.Election]
	f.mu.Unlock()
	if a.won() && granted != nil {
		granted <- a
	}
	return a.err
}

// begin configures an election and lets a first candidate lead it.
func (f *fleet) begin(e leadership.Election, p leadership.BallotPolicy) leadership.Election {
	f.t.Helper()
	f.grants[e] = make(chan attempt, 100)
	c := leadership.Config{LeaseDuration: time.Hour}
	request := leadership.ConfigureRequest{Election: e, ConfigureCommand: leadership.ConfigureCommand{Config: c}}
	if _, err := f.sites[0].inst.Configure(f.t.Context(), request); err != nil {
		f.t.Fatal(err)
	}
	f.join(e, 0, "first", 0)
	f.led(e, <-f.grants[e])
	request.Config.Ballot = p
	if _, err := f.sites[0].inst.Configure(f.t.Context(), request); err != nil {
		f.t.Fatal(err)
	}
	return e
}

// join lets a candidate stand in line at a site until it is granted, killed or dismissed.
func (f *fleet) join(e leadership.Election, at int, id string, priority int64) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.t.Context()))
	b := &bidder{site: at, priority: priority, key: leadership.NewKey(), cancel: cancel}
	ask := leadership.AcquireRequest{Election: e, CandidateID: leadership.CandidateID(id), Key: &b.key, Wait: leadership.MaxWait}
	ask.Priority = priority
	f.mu.Lock()
	f.bidders[ask.CandidateID] = b
	f.mu.Unlock()
	f.waits.Go(func() {
		for ctx.Err() == nil {
			call := checker.Call{Caller: id, Verb: checker.Acquire, Election: e, Candidate: ask.CandidateID, Key: b.key.Hash(), Candidacy: ask.Candidacy, Asked: boottime.Now()}
			g, err := f.sites[at].inst.Acquire(ctx, ask)
			f.record(call, g, err)
			switch {
			case err == nil, ctx.Err() != nil:
				return
			case errors.Is(err, leadership.LeaseHeld):
			case errors.Is(err, leadership.StoreUnavailable), errors.Is(err, leadership.OutcomeUnknown):
				select {
				case <-time.After(50 * time.Millisecond):
				case <-ctx.Done():
				}
			default:
				f.t.Errorf("%s at site %d: %v", id, at, err)
				return
			}
		}
	})
}

// record keeps what a caller was told.
func (f *fleet) record(c checker.Call, g leadership.Grant, err error) {
	c.Answered = boottime.Now()
	refusal, refused := errors.AsType[*leadership.Error](err)
	switch {
	case err == nil:
		c.Answer, c.Waited = &g.Lease, g.Waited
	case refused:
		c.Code, c.Answer, c.Because, c.Again, c.Waited = refusal.Code, refusal.Lease, refusal.Reason, refusal.RetryAfter, leadership.MaxWait
	case errors.Is(err, leadership.StoreUnavailable):
		c.Code = leadership.StoreUnavailable
	default:
		c.Code, c.Answered = leadership.OutcomeUnknown, checker.Forever
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, c)
}

// kill cuts the connection of a candidate.
func (f *fleet) kill(id leadership.CandidateID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.bidders[id]
	b.cancel()
	b.killed = boottime.Now()
}

// settle returns once so many candidates stand in line.
func (f *fleet) settle(e leadership.Election, n int) {
	f.t.Helper()
	for {
		standing := 0
		f.mu.Lock()
		one := make(map[int]leadership.CandidateID) // of those at each site
		for id, b := range f.bidders {
			one[b.site] = id
		}
		f.mu.Unlock()
		for at, id := range one {
			x, err := f.sites[at].inst.Explain(f.t.Context(), leadership.ExplainRequest{Election: e, CandidateID: id})
			if err != nil {
				f.t.Fatal(err)
			}
			for _, c := range x.Causes {
				if c.Code == leadership.ReasonInLine {
					standing += c.Of
				}
			}
		}
		if standing >= n {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-f.t.Context().Done():
			f.t.Fatalf("%d of %d candidates stand in line", standing, n)
		}
	}
}

// handOver lets the leader release, does what is to be done meanwhile, and returns the grant.
func (f *fleet) handOver(e leadership.Election, meanwhile func()) attempt {
	f.t.Helper()
	f.mu.Lock()
	f.attempts[e] = nil
	lease, at := f.leader[e], f.leads[e]
	f.mu.Unlock()
	f.stall.Store(0)
	f.released = boottime.Now()
	if _, err := f.sites[at].inst.Release(f.t.Context(), lease); err != nil {
		f.t.Fatalf("release: %v", err)
	}
	meanwhile()
	for began := boottime.Now(); boottime.Now()-began < 5*time.Minute; {
		select {
		case grant := <-f.grants[e]:
			f.led(e, grant)
			return grant
		case <-time.After(time.Second):
			if grant, ok := f.unheard(e, lease.Token+1); ok {
				f.led(e, grant)
				return grant
			}
		}
	}
	f.t.Fatalf("no candidate is granted within five minutes:\n%s", f.told(e))
	return attempt{}
}

// unheard is a grant whose outcome its instance did not learn, because the candidate's connection
// was cut in that moment. The lease is left to run out.
func (f *fleet) unheard(e leadership.Election, token leadership.Token) (grant attempt, ok bool) {
	at := slices.IndexFunc(f.sites, func(s *site) bool { return s.cut.Load() == 0 })
	reading, err := f.sites[at].inst.Read(f.t.Context(), leadership.ReadRequest{Election: e, Strong: true})
	if err != nil || reading.Token != token || reading.State != leadership.Held {
		return attempt{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.attempts[e], func(a attempt) bool {
		return errors.Is(a.err, leadership.OutcomeUnknown) && a.change.Record.Token == token && a.change.Record.LeaderID == reading.LeaderID
	})
	if i < 0 {
		return attempt{}, false
	}
	return f.attempts[e][i], true
}

// led notes the leader.
func (f *fleet) led(e leadership.Election, grant attempt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := grant.change.Record
	f.leader[e] = leadership.LeaseRequest{Election: e, CandidateID: r.LeaderID, Key: f.bidders[r.LeaderID].key, Token: r.Token}
	f.leads[e] = grant.site
}

// dismiss lets all candidates go.
func (f *fleet) dismiss(e leadership.Election) {
	f.mu.Lock()
	leader := f.leader[e].CandidateID
	for id, b := range f.bidders {
		if b.cancel(); id != leader {
			delete(f.bidders, id)
		}
	}
	f.mu.Unlock()
	f.waits.Wait()
}

func (f *fleet) dismissAll() { f.dismiss("") }

// bidsIn are the bids that the granting transaction has read and that were not void.
func bidsIn(grant attempt) (all []leadership.Bid) {
	standing := grant.seen.Record.Standing
	if standing.Bids == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(standing.Bids), &all); err != nil {
		panic(err) // the store has checked it
	}
	kept := grant.seen.Record.Policy.Ballot.Window + 4*time.Second
	return slices.DeleteFunc(all, func(b leadership.Bid) bool { return grant.seen.Now.Sub(b.At) > kept })
}

func (f *fleet) bids(grant attempt) int { return len(bidsIn(grant)) }

// judge checks a grant: each better bid is of a candidate that was killed, or whose instance was,
// or that this machine has kept from asking in time, which is an excuse. It reports how many bids
// were in.
func (f *fleet) judge(e leadership.Election, grant attempt) (bids int) {
	f.t.Helper()
	f.missed.Attempt(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	r := grant.change.Record
	if b := f.bidders[r.LeaderID]; before(b.killed, grant) {
		f.t.Errorf("%s was granted after its connection had been cut", r.LeaderID)
	}
	all := bidsIn(grant)
	priority := f.bidders[r.LeaderID].priority
	better, missed := 0, []leadership.CandidateID(nil)
	for _, bid := range all {
		b := f.bidders[bid.CandidateID]
		if b == nil || bid.Priority != b.priority {
			f.t.Errorf("there is a bid of %+v, and the candidate is %+v", bid, b)
			continue
		}
		if bid.Priority < priority || bid.Priority == priority && bid.CandidateID >= r.LeaderID {
			continue
		}
		switch better++; {
		case before(b.killed, grant) || before(time.Duration(f.sites[b.site].cut.Load()), grant):
		case f.slow(e, b.site):
			missed = append(missed, bid.CandidateID)
		default:
			f.t.Errorf("%s of priority %d was granted, and %+v has bid and was there:\n%s", r.LeaderID, priority, bid, f.toldOf(e))
		}
	}
	if missed != nil {
		f.missed.Excuse("%s: %s was granted, and %v missed their turns", e, r.LeaderID, missed)
	}
	var detail struct{ Bids, Place int }
	if err := json.Unmarshal([]byte(grant.change.Events[len(grant.change.Events)-1].Detail), &detail); err != nil || detail.Place > better+1 || detail.Bids < detail.Place {
		f.t.Errorf("%d bids are better than that of %s, and its event says %+v (%v)", better, r.LeaderID, detail, err)
	}
	return len(all)
}

// before reports whether there was a death before the grant was decided.
func before(death time.Duration, grant attempt) bool { return death > 0 && death < grant.decided }

// slow reports whether the machine has kept a site from asking at its turn. f.mu is held.
func (f *fleet) slow(e leadership.Election, at int) bool {
	const much = leadership.BidTurn / 4
	if time.Duration(f.stall.Load()) > much {
		return true
	}
	now := boottime.Now()
	for a, of := range f.under { // what it did is written only once it has ended
		if of == e && a.site == at && now-a.began > much {
			return true
		}
	}
	return slices.ContainsFunc(f.attempts[e], func(a attempt) bool { return a.site == at && (a.ended-a.began > much || a.err != nil && again(a.err)) })
}

func again(err error) bool {
	return errors.Is(err, leadership.StoreUnavailable) || errors.Is(err, leadership.OutcomeUnknown)
}

func (f *fleet) updates(e leadership.Election) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.attempts[e])
}

// writes is how many transactions have changed something since the last release.
func (f *fleet) writes(e leadership.Election) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.attempts[e] {
		if a.writes() {
			n++
		}
	}
	return n
}

func (f *fleet) told(e leadership.Election) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.toldOf(e)
}

// toldOf is what has happened since the last release. f.mu is held.
func (f *fleet) toldOf(e leadership.Election) string {
	var text strings.Builder
	for _, a := range f.attempts[e] {
		fmt.Fprintf(&text, "%8v to %8v, site %d: wrote %t, %v; bids %s\n", (a.began - f.released).Round(time.Millisecond), (a.ended - f.released).Round(time.Millisecond),
			a.site, a.writes(), a.err, a.change.Record.Standing.Bids)
	}
	return text.String()
}

// figures are those of many takeovers.
type figures struct {
	took    []time.Duration
	several int // had more than one bid
	killed  int // had a bidder or an instance that died
}

// String gives the durations' median and the greatest of a hundred.
func (f figures) String() string {
	if len(f.took) == 0 {
		return "none"
	}
	slices.Sort(f.took)
	at := func(q float64) time.Duration { return f.took[int(q*float64(len(f.took)-1))].Round(time.Millisecond) }
	return fmt.Sprintf("%d takeovers, p50 %v, p99 %v; with several bids %d, with a death %d", len(f.took), at(0.5), at(0.99), f.several, f.killed)
}

// run makes so many changes of leader, with candidates that come before and after the release; with
// deaths, some of them and of the instances die meanwhile.
func (f *fleet) run(e leadership.Election, p leadership.BallotPolicy, n int, deaths bool) (all figures) {
	f.t.Helper()
	random := rand.New(rand.NewPCG(uint64(len(f.sites)), uint64(n)))
	f.begin(e, p)
	for round := range n {
		early, late := 1+random.IntN(5), random.IntN(3)
		name := func(i int) string { return fmt.Sprintf("r%03d-c%d", round, i) }
		for i := range early {
			f.join(e, random.IntN(len(f.sites)), name(i), random.Int64N(4))
		}
		f.settle(e, early)
		death := deaths && random.IntN(2) == 0
		grant := f.handOver(e, func() {
			for i := range late {
				<-time.After(time.Duration(random.Int64N(int64(p.Window/2 + time.Millisecond))))
				f.join(e, random.IntN(len(f.sites)), name(early+i), random.Int64N(4))
			}
			if death {
				f.die(e, random, name, early+late)
			}
		})
		all.took = append(all.took, grant.ended-f.released)
		if p.HasBallot() {
			all.several += count(f.judge(e, grant) > 1)
		}
		all.killed += count(death)
		for _, s := range f.sites {
			s.cut.Store(0)
		}
		f.dismiss(e)
	}
	f.history(e, n+1)
	return all
}

// die lets a candidate's connection be cut, or an instance be cut off from the store, while at
// least one candidate is left.
func (f *fleet) die(e leadership.Election, random *rand.Rand, name func(int) string, candidates int) {
	<-time.After(time.Duration(random.Int64N(int64(leadership.DefaultWindow))))
	if candidates < 2 {
		return
	}
	victim := leadership.CandidateID(name(random.IntN(candidates)))
	f.mu.Lock()
	at := f.bidders[victim].site
	elsewhere := false
	for id, b := range f.bidders {
		elsewhere = elsewhere || b.site != at && id != f.leader[e].CandidateID // which has released
	}
	f.mu.Unlock()
	if elsewhere && random.IntN(2) == 0 {
		f.sites[at].cut.Store(int64(boottime.Now()))
		return
	}
	f.kill(victim)
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// history checks that each grant is in the history once, with the next token, and that its event
// tells by which ballot.
func (f *fleet) history(e leadership.Election, grants int) {
	f.t.Helper()
	token, recording := leadership.Token(0), checker.Recording{Calls: f.calls}
	for after := leadership.Revision(0); ; {
		events, err := f.sites[0].inst.Events(f.t.Context(), leadership.EventsRequest{Election: e, After: after, Limit: leadership.MaxPageSize})
		if err != nil {
			f.t.Fatal(err)
		}
		recording.History = append(recording.History, events...)
		for _, event := range events {
			after = event.Revision
			if event.Type == leadership.EventAcquired {
				if token++; event.Token != token {
					f.t.Errorf("%s: token %d follows %d", e, event.Token, token-1)
				}
			}
		}
		if len(events) < leadership.MaxPageSize {
			break
		}
	}
	if int(token) != grants {
		f.t.Errorf("%s: the history has %d grants, and the observer has seen %d", e, token, grants)
	}
	const guard = 100 * time.Millisecond // larger than that of either store
	if report := checker.CH(recording, guard); report.Err() != nil || report.Checked < grants {
		f.t.Errorf("%s: %d grants checked: %v", e, report.Checked, report.Err())
	}
}
