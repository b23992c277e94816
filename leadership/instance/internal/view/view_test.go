package view_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
)

const jobs = leadership.Election("jobs")

// start is the moment at which the tests begin, by the clock of the driver and by the store's.
const start = time.Hour

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// newView returns a view whose jitter is always none.
func newView(live bool) *view.View {
	return view.New(view.Config{
		Expiry: 5 * time.Second, Size: 10, Live: live,
		Jitter: func(time.Duration) time.Duration { return 0 },
	})
}

// held is a lease of ann's with so much left at that moment.
func held(r leadership.Revision, at, left time.Duration) leadership.Lease {
	return leadership.Lease{
		Election: jobs, State: leadership.Held, LeaderID: "ann", Token: 1, Revision: r, LeaseDuration: left,
		ExpiresIn: left, ReadAt: epoch.Add(at), LeaseExpiration: epoch.Add(at + left),
	}
}

func event(r leadership.Revision, t leadership.EventType, leader leadership.CandidateID, token leadership.Token) leadership.Event {
	return leadership.Event{Election: jobs, Revision: r, Type: t, LeaderID: leader, Token: token}
}

// due returns what there is to do up to a moment, and when; done answers each.
func due(v *view.View, until time.Duration, done func(t view.Task, now time.Duration)) (at []time.Duration, why []view.Reason) {
	for now := start; ; {
		t, next, ok := v.Next(now)
		switch {
		case ok:
			at, why = append(at, now), append(why, t.Reason)
			done(t, now)
		case next > until:
			return at, why
		default:
			now = next
		}
	}
}

// A lease that is renewed through another instance is looked at for those who watch it, less and
// less often: the instance that renews it is the one to record its end.
func TestAWatcherOfALeaseThatIsRenewedElsewhereCostsSixteenReadsAnHour(t *testing.T) {
	for _, lease := range []time.Duration{time.Second, 3 * time.Second, 10 * time.Second, 30 * time.Second, 5 * time.Minute} {
		v := newView(true)
		e := v.Watch(jobs)
		v.Follow(held(1, start, lease), start)
		at, why := due(v, start+time.Hour, func(task view.Task, now time.Duration) {
			v.Expired(task, held(1, now, lease), nil, now, now)
		})
		const beginning = 2 // the read and the history that the watch began with
		if len(at)+beginning > 16 {
			t.Errorf("a lease of %v: looked at %d times in an hour, want 14 at most: %v", lease, len(at), at)
		}
		if first := at[0] - start; first < lease || first > lease+time.Second || why[0] != view.Watcher {
			t.Errorf("a lease of %v: the first look has the reason %d after %v, want a watcher at the end", lease, why[0], first)
		}
		v.Unwatch(e)
		if due(v, start+2*time.Hour, func(task view.Task, now time.Duration) { v.Expired(task, held(1, now, lease), nil, now, now) }); v.Elections() > 0 {
			t.Errorf("a lease of %v: %d elections are remembered once the watcher has gone", lease, v.Elections())
		}
	}
}

// fleet is instances that one leader's renewals reach.
type fleet struct {
	views []*view.View
	lease time.Duration
	at    time.Duration // of the last renewal
	looks int
	told  time.Duration // when a look found the lease over; 0 until then
}

// run lets the leader renew three times in a lease, through the instance that is chosen, until the
// moment; and then nothing but looks happen until the other.
func (f *fleet) run(from, until, after time.Duration, choose func(n int) int) {
	for n, now := 0, from; now < after; now += f.lease / 3 {
		if now < until {
			f.at = now
			f.views[choose(n)].Learn(new(held(1, now, f.lease)), view.Committed, now, now)
			n++
		}
		for _, v := range f.views {
			f.look(v, now, now+f.lease/3)
		}
	}
}

// look does what the view asks for before the moment.
func (f *fleet) look(v *view.View, now, until time.Duration) {
	for now < until {
		task, next, ok := v.Next(now)
		if !ok {
			now = next
			continue
		}
		f.looks++
		l := held(1, f.at, f.lease)
		if l.ExpiresIn = f.at + f.lease - now; l.ExpiresIn <= 0 {
			if f.told == 0 {
				f.told = now
			}
			l = leadership.Lease{Election: jobs, State: leadership.Vacant, Token: 1, Revision: 2, LeaseDuration: f.lease}
		}
		v.Expired(task, l, nil, now, now)
	}
}

func newFleet(n int, lease time.Duration) *fleet {
	f := &fleet{lease: lease}
	for range n {
		f.views = append(f.views, newView(true))
	}
	return f
}

// Of instances that renew a lease in turn none knows that it is the last. Each looks twice at its
// own end, and from then on the leader comes back before it would look again.
func TestRenewalsThroughManyInstancesCostNoLooks(t *testing.T) {
	for _, n := range []int{1, 2, 4, 8} {
		for _, lease := range []time.Duration{3 * time.Second, 30 * time.Second, 5 * time.Minute} {
			f := newFleet(n, lease)
			f.run(start, start+time.Hour, start+time.Hour, func(i int) int { return i % n })
			most := 2 * n
			switch {
			case n <= 2: // the leader is back before its lease could be over
				most = 0
			case n == 8 && lease == 5*time.Minute: // it comes back after 13 minutes only
				most = 5 * n
			}
			if f.looks > most {
				t.Errorf("%d instances, a lease of %v: %d looks in an hour, want %d at most", n, lease, f.looks, most)
			}
		}
	}
	rand := rand.New(rand.NewPCG(1, 2))
	f := newFleet(4, 30*time.Second)
	f.run(start, start+10*time.Hour, start+10*time.Hour, func(int) int { return rand.IntN(4) })
	if f.looks > 10*32 {
		t.Errorf("4 instances at random: %d looks in ten hours, want 8 an hour for each at most", f.looks)
	}
}

func TestTheEndOfALeaseThatIsRenewedInTurnIsToldWithinFourLeases(t *testing.T) {
	const lease = 30 * time.Second
	f := newFleet(4, lease)
	f.run(start, start+time.Hour, start+2*time.Hour, func(i int) int { return i % 4 })
	if late := f.told - f.at; f.told == 0 || late > 4*lease+2*time.Second {
		t.Errorf("the end is told %v after the last renewal", late)
	}
}

func TestAWaiterHasEachEndLookedAt(t *testing.T) {
	const lease = 30 * time.Second
	v := newView(true)
	v.Watch(jobs)
	v.Wait(jobs, nil)
	v.Follow(held(1, start, lease), start)
	at, _ := due(v, start+10*time.Minute, func(task view.Task, now time.Duration) {
		v.Expired(task, held(1, now, lease), nil, now, now)
	})
	if len(at) < 19 {
		t.Errorf("looked %d times in 10 minutes at a lease of %v with a waiting candidate, want each time", len(at), lease)
	}
}

func TestNeitherATicketNorOverridesAreKept(t *testing.T) {
	for _, from := range []view.Source{view.Read, view.Committed} {
		v := newView(true)
		e := v.Wait(jobs, nil)
		l := held(1, start, time.Minute)
		l.Ticket, l.Overrides = "the leader's", "an operator's"
		v.Learn(&l, from, start, start)
		if known := e.Lease(); known == nil || known.Ticket != "" || known.Overrides != "" {
			t.Errorf("source %v: got %+v, want the lease without its ticket and overrides", from, known)
		}
	}
}

// An event does not say how long the lease lasts, so no lease is derived from it.
func TestNoLeaseIsMadeUpFromAnEvent(t *testing.T) {
	for name, c := range map[string]struct {
		event  leadership.Event
		leader leadership.CandidateID
		lease  bool // the store's last word still describes it
		open   time.Duration
	}{
		"released":           {event(2, leadership.EventReleased, "", 1), "", false, 0},
		"acquired elsewhere": {event(3, leadership.EventAcquired, "bob", 2), "bob", false, leadership.MinLeaseDuration},
		"updated":            {event(2, leadership.EventUpdated, "ann", 1), "ann", true, time.Minute},
		"configured":         {event(2, leadership.EventConfigured, "ann", 1), "ann", true, time.Minute},
		"deleted":            {event(2, leadership.EventDeleted, "", 1), "", false, 0},
		"unlocked":           {event(2, leadership.EventUnlocked, "", 1), "", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			v := newView(true)
			e := v.Wait(jobs, nil)
			v.Learn(new(held(1, start, time.Minute)), view.Read, start, start)
			assert.True(t, v.Heard(c.event, start+1), "an event that was not heard before is no news")
			l := e.Lease()
			if open := e.Open() - start; e.Leader() != c.leader || (l != nil) != c.lease || open < c.open || open > c.open+1 {
				t.Errorf("leader %q, lease %v, opens after %v; want %q, %t and %v", e.Leader(), l, open, c.leader, c.lease, c.open)
			}
			if l != nil && (l.Revision != 1 || l.ExpiresIn != time.Minute) {
				t.Errorf("got %+v, want the lease as the store gave it", l)
			}
			if v.Fresh(jobs, 0) != nil {
				t.Error("a reader is shown a state older than the event")
			}
		})
	}
}

// A call of this instance may be answered late. What a reader was shown, or was heard, while the
// election was not remembered may be newer.
func TestReaderIsShownOnlyResultsOfReads(t *testing.T) {
	v := newView(true)
	v.Heard(event(9, leadership.EventReleased, "", 9), start) // of an election that is not remembered
	v.Wait(jobs, nil)
	v.Learn(new(held(8, start, time.Minute)), view.Committed, start-1, start+1)
	if l := v.Fresh(jobs, 0); l != nil {
		t.Errorf("shown revision %d, and 9 was heard before", l.Revision)
	}
	v.Reading(jobs)
	brought := held(10, start+2, time.Minute)
	v.Landed(jobs, &brought, start+2, start+3)
	if l := v.Fresh(jobs, 0); l == nil || l.Revision != 10 || l.Asked != start+2 {
		t.Errorf("got %+v, want what the read has brought", l)
	}
}

// An event found in the outbox is treated like any other that is heard: missing events before it
// are looked for at once.
func TestAnEventThatDoesNotFollowIsLookedForAtOnce(t *testing.T) {
	v := newView(true)
	e := v.Watch(jobs)
	_, look, err := e.After(1, start)
	if look == nil || err != nil {
		t.Fatalf("got %v, %v; want a first look", look, err)
	}
	v.Looked(jobs, *look, nil, false, nil, start, start)
	if _, _, ok := v.Next(start); ok {
		t.Error("looks though there is nothing to look for")
	}
	v.Heard(event(3, leadership.EventAcquired, "bob", 2), start)
	task, _, ok := v.Next(start)
	if want := (view.Task{Election: jobs, Reason: view.Missing, After: 1}); !ok || task != want {
		t.Errorf("got %+v, %v; want %+v", task, ok, want)
	}
	missing, _ := v.Look(task)
	events := []leadership.Event{event(2, leadership.EventReleased, "", 1), event(3, leadership.EventAcquired, "bob", 2)}
	assert.True(t, v.Looked(jobs, missing, events, false, nil, start, start), "what was found is no news")
	got, look, err := e.After(1, start)
	if diff := cmp.Diff(events, got); look != nil || err != nil || diff != "" {
		t.Errorf("%v, %v (-want +got):\n%s", look, err, diff)
	}
}

func TestEachReasonHasItsMoment(t *testing.T) {
	v := newView(false)
	v.Learn(new(held(1, start, time.Minute)), view.Committed, start, start)
	e := v.Watch(jobs)
	_, look, _ := e.After(1, start)
	v.Looked(jobs, *look, nil, false, nil, start, start)
	failing := true
	at, why := due(v, start+20*time.Second, func(task view.Task, now time.Duration) {
		look, _ := v.Look(task)
		var err error
		if failing {
			err = leadership.StoreUnavailable
		}
		failing = false
		v.Looked(jobs, look, nil, false, err, now, now)
	})
	for i := range at {
		at[i] -= start
	}
	assert.Empty(t, cmp.Diff([]time.Duration{5 * time.Second, 6 * time.Second, 11 * time.Second, 16 * time.Second}, at), "looks (-want +got)")
	assert.Empty(t, cmp.Diff([]view.Reason{view.Silence, view.Failed, view.Silence, view.Silence}, why), "reasons (-want +got)")
}

// One that moves between instances is otherwise looked after some leases later.
func TestALeaseThatNoRenewalExtendsIsLookedAfterAtItsEnd(t *testing.T) {
	const lease = 10 * time.Second
	for name, c := range map[string]struct {
		endsBy time.Duration // from the last renewal
		want   time.Duration
	}{
		"its end is its latest end":  {lease, lease},
		"its latest end comes later": {lease + 1, 4 * lease},
	} {
		t.Run(name, func(t *testing.T) {
			v := newView(true)
			v.Learn(new(held(1, start, lease)), view.Committed, start, start)
			now := start
			for range 2 { // looks that find it renewed elsewhere
				_, now, _ = v.Next(now)
				task, _, _ := v.Next(now)
				v.Expired(task, held(1, now, lease), nil, now, now)
				now += lease
				v.Learn(new(held(1, now, lease)), view.Committed, now, now)
			}
			l := held(1, now, lease)
			l.EndsBy, l.EndsBecause, l.EndsIn = l.ReadAt.Add(c.endsBy), leadership.EndsEvicted, c.endsBy
			v.Learn(&l, view.Committed, now, now)
			at := now
			for ok := false; !ok && at < now+time.Hour; {
				_, at, ok = v.Next(at)
			}
			if late := at - now - c.want; late < 0 || late > time.Second {
				t.Errorf("looked at %v after the last renewal, want %v", at-now, c.want)
			}
		})
	}
}

func TestANewEpochMakesTheOldTokenStaleAtOnceAndItsLeaderLeadsOn(t *testing.T) {
	v := newView(true)
	e := v.Wait(jobs, nil)
	l := held(2, start, time.Minute)
	v.Reading(jobs)
	v.Landed(jobs, &l, start, start)
	terms, open := e.Terms(), e.Open()
	if v.Fresh(jobs, 0) == nil {
		t.Fatal("what was read is not kept")
	}
	v.Heard(event(3, leadership.EventEpoch, "ann", 2), start+time.Second)
	if v.Fresh(jobs, 0) != nil || e.Lease() != nil {
		t.Error("the lease of the old token is shown")
	}
	if leader, token := e.Term(); leader != "ann" || token != 2 {
		t.Errorf("%q leads with token %d, want ann with 2", leader, token)
	}
	if e.Terms() != terms || e.Open() < open {
		t.Errorf("the lease counts as another's: it opens %v sooner", open-e.Open())
	}
	v.Learn(new(held(2, start+2*time.Second, time.Minute)), view.Committed, start+time.Second, start+2*time.Second)
	if _, token := e.Term(); token != 2 {
		t.Errorf("a renewal that was answered late brings token %d back", token)
	}
}

func TestADeposedLeaderIsGoneAtOnceAndAskedForAfterItsLock(t *testing.T) {
	for name, c := range map[string]struct {
		known bool
		open  time.Duration
	}{
		"its end is known": {true, time.Minute},
		"nothing is known": {false, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			v := newView(true)
			e := v.Wait(jobs, nil)
			if c.known {
				v.Learn(new(held(2, start, time.Minute)), view.Read, start, start)
			}
			v.Heard(event(3, leadership.EventDeposed, "", 1), start+time.Second)
			if e.Leader() != "" || e.Lease() != nil || e.Terms() != 1 {
				t.Errorf("%q leads, by %+v", e.Leader(), e.Lease())
			}
			if open := e.Open() - start; open != c.open {
				t.Errorf("opens after %v, want %v", open, c.open)
			}
		})
	}
}

func TestEventsAfterWhichABarMayBeGoneAreCountedOnceHoweverTheyCome(t *testing.T) {
	v := newView(true)
	e := v.Wait(jobs, nil)
	v.Learn(new(held(5, start, time.Minute)), view.Read, start, start)
	for i, c := range []struct {
		event  leadership.Event
		orders int
	}{
		{event(6, leadership.EventUpdated, "ann", 1), 0},
		{event(7, leadership.EventLifted, "ann", 1), 1},
		{event(7, leadership.EventLifted, "ann", 1), 1},
		{event(8, leadership.EventJudged, "ann", 1), 1},
		{event(9, "oneOfALaterVersion", "ann", 1), 2},
	} {
		if v.Heard(c.event, start); e.Orders() != c.orders {
			t.Errorf("event %d of type %s: %d are counted, want %d", i, c.event.Type, e.Orders(), c.orders)
		}
	}
	v.Learn(new(held(10, start+1, time.Minute)), view.Read, start+1, start+1)
	if !v.Heard(event(10, leadership.EventResumed, "ann", 1), start+2) || e.Orders() != 3 {
		t.Error("an event that comes after a read has shown its revision is no news")
	}
	v.Watch(jobs)
	events := []leadership.Event{event(11, leadership.EventLifted, "ann", 1), event(12, leadership.EventUpdated, "ann", 1)}
	_, look, _ := e.After(10, start+3)
	if v.Looked(jobs, *look, events, false, nil, start+3, start+3); e.Orders() != 4 {
		t.Error("an event that was found in the history is not counted")
	}
}

func TestWhatIsLeftAgesWithALease(t *testing.T) {
	l := view.Lease{Lease: held(1, start, time.Minute)}
	l.EndsIn, l.Report, l.ReportAge = 90*time.Second, `{"progress":1}`, time.Second
	if aged := view.Aged(l.Lease, 10*time.Second); aged.ExpiresIn != 50*time.Second || aged.EndsIn != 80*time.Second || aged.ReportAge != 11*time.Second {
		t.Errorf("got %v, %v and %v", aged.ExpiresIn, aged.EndsIn, aged.ReportAge)
	}
}

func TestAnOrderThatWasMadeUpDoesNotHideThoseThatFollow(t *testing.T) {
	v := newView(true)
	e := v.Wait(jobs, nil)
	v.Learn(new(held(5, start, time.Minute)), view.Read, start, start)
	v.Heard(event(1<<40, leadership.EventLifted, "ann", 1), start+1)
	v.Learn(new(held(5, start+2, time.Minute)), view.Read, start+2, start+3)
	if v.Heard(event(6, leadership.EventLifted, "ann", 1), start+4); e.Orders() != 2 {
		t.Errorf("%d events of orders are counted, want the one that was made up and the one that was not", e.Orders())
	}
}

func TestAHeldElectionIsRememberedAndNotLookedAt(t *testing.T) {
	v := newView(true)
	e := v.Hold(jobs)
	v.Learn(new(held(1, start, time.Minute)), view.Read, start, start)
	v.Heard(event(2, leadership.EventAcquired, "bob", 2), start)
	if leader, token := e.Term(); leader != "bob" || token != 2 || e.Last() == nil || v.Fresh(jobs, 0) != nil {
		t.Errorf("%q leads with token %d, the last lease is %v; want bob, 2, and ann's, which no reader is shown", leader, token, e.Last())
	}
	if at, _ := due(v, start+time.Hour, func(view.Task, time.Duration) {}); len(at) > 0 {
		t.Errorf("it is looked at %d times", len(at))
	}
	if v.Release(e); v.Elections() > 0 {
		t.Error("it is remembered after its release")
	}
}

func TestTheHeadOfAJournalIsWhatWasToldLastOrReadSince(t *testing.T) {
	v := newView(true)
	assert.False(t, v.Appended(jobs, 3), "it is news of an election that is not remembered")
	e := v.Hold(jobs)
	if !v.Appended(jobs, 3) || v.Appended(jobs, 3) || v.Appended(jobs, 2) {
		t.Error("only a higher index is news")
	}
	for _, c := range []struct{ read, before, want leadership.Index }{
		{4, 3, 4},
		{2, 3, 4}, // 4 was told while the store was asked
		{2, 4, 2}, // 4 was made up
		{5, 0, 5},
	} {
		if e.HeadRead(c.read, c.before); e.Head() != c.want {
			t.Errorf("the store says %d, asked when it was %d: %d, want %d", c.read, c.before, e.Head(), c.want)
		}
	}
}
