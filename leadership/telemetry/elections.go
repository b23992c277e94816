package telemetry

import (
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"regent/leadership"
	"regent/leadership/rule"
)

// maxElections limits how many elections are remembered, because callers choose the names. The one
// without news for the longest time is forgotten.
const maxElections = 100_000

// elections is this instance's knowledge of the elections, for gauges. All times are the store's.
// The instance's view cannot serve for that: it forgets elections that no caller asks about, and
// the gauges count these, too.
type elections struct {
	mu           sync.Mutex // guards the fields below and the standings
	clock        clock
	known        *simplelru.LRU[leadership.Election, *standing]
	eyed         map[*standing]struct{} // the notable ones
	held, vacant int
	deep         [leadership.MaxDepth + 2]int // how many are held or vacant at each depth

	named   []leadership.Election // names and patterns of elections shown by name; set before the first election is known
	matched int                   // how many held or vacant elections match these
	shown   map[leadership.Election]*standing

	halts   []leadership.Override
	haltsAt leadership.Revision // of the record that the halts were last read from
}

func newElections(size int) *elections {
	es := &elections{clock: newClock(), eyed: make(map[*standing]struct{}), shown: make(map[leadership.Election]*standing)}
	var err error
	es.known, err = simplelru.NewLRU(size, func(e leadership.Election, s *standing) {
		delete(es.eyed, s)
		delete(es.shown, e)
		es.add(s, -1)
	})
	if err != nil {
		panic(err) // the size is positive
	}
	return es
}

func (es *elections) learn(snaps ...rule.Snapshot) {
	es.mu.Lock()
	defer es.mu.Unlock()
	for _, snap := range snaps {
		es.clock.set(snap.Now)
		if s := es.standing(snap.Record.Election, snap.Record.Revision); s != nil {
			if r := snap.Record; r.Election == leadership.HaltsElection && r.Revision >= s.revision && r.Revision > es.haltsAt {
				es.haltsAt = r.Revision
				es.halt(r.Standing.Overrides.List(), snap.Now)
			}
			depth := es.depth(snap.Record.Policy.Delegation.Parent)
			es.change(s, func() {
				s.learn(snap)
				s.depth = depth
			})
		}
	}
}

// depth returns the depth of an election with that parent. Call with mu held.
func (es *elections) depth(parent leadership.Election) int {
	if parent == "" {
		return 0
	}
	above, ok := es.known.Peek(parent)
	if !ok {
		return 1
	}
	return min(above.depth+1, len(es.deep)-1)
}

// yielded returns when the leader yielded, if that was the election's last change; zero if unknown,
// or if the last change was another.
func (es *elections) yielded(e leadership.Election, last leadership.Revision) (at time.Time) {
	es.mu.Lock()
	defer es.mu.Unlock()
	if s, ok := es.known.Peek(e); ok && s.yielded == last {
		at = s.yieldedAt
	}
	return at
}

// hear remembers events that any instance has committed. Old ones are dropped.
func (es *elections) hear(events ...leadership.Event) {
	es.mu.Lock()
	defer es.mu.Unlock()
	for _, e := range events {
		if s := es.standing(e.Election, e.Revision); s != nil {
			if e.Election == leadership.HaltsElection && e.Revision > s.revision {
				es.hearHalt(e)
			}
			es.change(s, func() { s.hear(e) })
		}
	}
}

// hearHalt updates the halts by an event of HaltsElection. Call with mu held.
func (es *elections) hearHalt(e leadership.Event) {
	d := e.ReadDetail()
	all := slices.DeleteFunc(slices.Clone(es.halts), func(o leadership.Override) bool { return o.Elections == d.Elections })
	if e.Type == leadership.EventHalted {
		all = append(all, leadership.Override{Elections: d.Elections, Since: e.At, Until: d.Until})
	}
	es.halt(all, e.At)
}

// halt applies the halts, as of the instant, to all elections. Call with mu held.
func (es *elections) halt(all []leadership.Override, at time.Time) {
	es.halts = all
	for _, s := range es.known.Values() {
		s.orders.halt(s.election, all, at)
		if s.notable(at) {
			es.eyed[s] = struct{}{}
		}
	}
}

// relate passes the orders of an election to its seat, and counts for the election how many seats
// are led or halted, and since when one is neither, or all are halted. Call with mu held.
func (es *elections) relate(s *standing) {
	of, n, _ := s.election.SeatOf()
	if whole, ok := es.known.Peek(of); ok && whole.seats >= n {
		s.above = &whole.orders
	}
	now := es.clock.now()
	s.led, s.halted, s.freed, s.barred = 0, 0, now, time.Time{}
	barred := 0
	for i := range s.seats {
		seat, ok := es.known.Peek(s.election.Seat(i + 1))
		if !ok {
			seat = &standing{}
			seat.orders.halt(s.election.Seat(i+1), es.halts, now)
		}
		if seat.orders.paused(now) {
			barred++
			s.barred = latest(s.barred, seat.orders.since(now))
		}
		switch {
		case ok && seat.state == held:
			s.led++
		case !ok:
			s.freed = time.Time{}
		case seat.orders.barred(now):
			s.halted++
		case latest(seat.endedAt, seat.orders.freed()).Before(s.freed):
			s.freed = latest(seat.endedAt, seat.orders.freed())
		}
	}
	if barred < s.seats {
		s.barred = time.Time{}
	}
}

// wait counts a waiting candidate until leave is called.
func (es *elections) wait(e leadership.Election) (leave func()) {
	es.mu.Lock()
	defer es.mu.Unlock()
	s := es.standing(e, 1)
	if s == nil {
		return func() {}
	}
	es.change(s, func() { s.join(es.clock.now()) })
	return func() {
		es.mu.Lock()
		defer es.mu.Unlock()
		s.waiting--
		s.left = es.clock.now()
	}
}

// last returns how the last term of an election ended, "" if unknown, and how long a candidate has
// waited for the next.
func (es *elections) last(e leadership.Election) (ended leadership.EventType, waited time.Duration) {
	es.mu.Lock()
	defer es.mu.Unlock()
	s, ok := es.known.Peek(e)
	if !ok {
		return "", 0
	}
	if now := es.clock.now(); s.wanted(now) {
		waited = now.Sub(s.since)
	}
	return s.ended, waited
}

// goesOn reports whether the leader with the token is known to have led under the previous one.
func (es *elections) goesOn(e leadership.Election, token leadership.Token) bool {
	es.mu.Lock()
	defer es.mu.Unlock()
	s, ok := es.known.Peek(e)
	return ok && s.epoch == token
}

// now returns the store's time, as far as it is known.
func (es *elections) now() time.Time {
	es.mu.Lock()
	defer es.mu.Unlock()
	return es.clock.now()
}

// stops are the reasons why the work of an election may stand still: each reports whether it holds,
// and since when.
var stops = [...]func(*standing, time.Time) (since time.Time, ok bool){
	leaderless: (*standing).leaderless,
	paused:     (*standing).paused,
	unapproved: (*standing).unapproved,
}

const (
	leaderless = iota
	paused
	unapproved
)

// stopped is how many elections stand still for one reason, and which has for the longest time.
type stopped struct {
	n        int
	longest  time.Duration
	election leadership.Election
}

type counts struct {
	held, vacant, flapping int
	grants                 int // the most grants of one election within the last hour; 0 if none has had two
	delegated, depth       int // how many elections were delegated, and the depth of the deepest
	stopped                [len(stops)]stopped
}

func (es *elections) count() counts {
	es.mu.Lock()
	defer es.mu.Unlock()
	c, now := counts{held: es.held, vacant: es.vacant}, es.clock.now()
	for depth, n := range es.deep {
		if depth > 0 && n > 0 {
			c.delegated, c.depth = c.delegated+n, depth
		}
	}
	for s := range es.eyed {
		if !s.notable(now) {
			delete(es.eyed, s)
		}
		es.relate(s)
		for i, stop := range stops {
			if since, ok := stop(s, now); ok {
				c.stopped[i].add(s.election, now.Sub(since))
			}
		}
		if s.flaps(now) {
			c.flapping++
		}
		if n := s.lately(now); n > 1 {
			c.grants = max(c.grants, n)
		}
	}
	return c
}

func (s *stopped) add(e leadership.Election, d time.Duration) {
	s.n++
	if d > s.longest || d == s.longest && e < s.election {
		s.longest, s.election = d, e
	}
}

// standing returns the known state of an election; nil for one that does not count. Call with mu
// held.
func (es *elections) standing(e leadership.Election, r leadership.Revision) *standing {
	if r == 0 {
		return nil
	}
	s, ok := es.known.Get(e)
	if !ok {
		s = &standing{election: e, named: es.names(e)}
		s.orders.halt(e, es.halts, es.clock.now())
		es.known.Add(e, s)
	}
	return s
}

// change changes a standing and keeps the counts right. Call with mu held.
func (es *elections) change(s *standing, do func()) {
	es.add(s, -1)
	do()
	es.add(s, +1)
	es.show(s)
	if s.notable(es.clock.now()) {
		es.eyed[s] = struct{}{}
	}
}

func (es *elections) add(s *standing, n int) {
	switch s.state {
	case held:
		es.held += n
	case vacant:
		es.vacant += n
	default:
		return
	}
	es.deep[s.depth] += n
	if s.named {
		es.matched += n
	}
}

// clock returns the store's time without asking it: the last known time plus the monotonic time
// since.
type clock struct {
	start time.Time // of this process
	store time.Time // at start
}

func newClock() clock {
	now := time.Now()
	return clock{now, now}
}

func (c *clock) set(now time.Time) {
	if !now.IsZero() {
		c.store = now.Add(-time.Since(c.start))
	}
}

func (c *clock) now() time.Time { return c.store.Add(time.Since(c.start)) }
