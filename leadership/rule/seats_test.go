package rule_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
)

// floor is an election with seats whose operators, candidates and tellers do not wait for each
// other: what each has read, and each message, may be late, or come twice.
type floor struct {
	whole    rule.Snapshot
	seats    map[int]rule.Snapshot
	reads    []rule.Snapshot             // of the whole, by anyone
	tells    map[int][]rule.Snapshot     // by seat: of the whole, under way
	counts   map[leadership.Revision]int // of seats, by revision of the whole
	told     leadership.Revision         // of the last change that was answered
	promised map[int]time.Time           // to leaders of seats beyond, once that was answered
	log      []string
	now      time.Time
	draw     *rand.Rand
}

const most = 3 // seats

func (f *floor) note(format string, args ...any) { f.log = append(f.log, fmt.Sprintf(format, args...)) }

func (f *floor) at(s rule.Snapshot) rule.Snapshot {
	s.Now, s.Guard = f.now, guard
	return s
}

// allowed is how many seats there may be: as many as any change since the last answered one says.
func (f *floor) allowed() (n int) {
	for r, seats := range f.counts {
		if r >= f.told {
			n = max(n, seats)
		}
	}
	return n
}

func (f *floor) configure(n int) {
	ch, err := rule.Apply(f.at(f.whole), leadership.Configure{Config: leadership.Config{Seats: n, LeaseDuration: 10 * time.Second}})
	if err != nil || ch.Empty() {
		return
	}
	f.whole = apply(f.at(f.whole), ch)
	r := f.whole.Record.Revision
	f.counts[r] = n
	for i := range most {
		f.tells[i+1] = append(f.tells[i+1], f.whole)
	}
	f.note("seats=%d at revision %d", n, r)
}

func (f *floor) tell(i int) {
	if len(f.tells[i]) == 0 {
		return
	}
	n := f.draw.IntN(len(f.tells[i]))
	w := f.tells[i][n]
	if f.draw.IntN(3) > 0 { // else its copy comes later
		f.tells[i] = slices.Delete(f.tells[i], n, n+1)
	}
	ch, err := rule.Tell(f.at(f.seats[i]), w)
	if err != nil {
		panic(err)
	}
	f.seats[i] = apply(f.at(f.seats[i]), ch)
	f.note("seat %d hears of revision %d", i, w.Record.Revision)
	r := w.Record.Revision
	for i := range most {
		if f.seats[i+1].Record.Standing.Seat < r {
			return
		}
	}
	if r > f.told {
		f.told = r
		f.note("revision %d is answered", r)
		for i, s := range f.seats {
			if i > f.allowed() && f.at(s).Record.LeaderID != "" {
				r := s.Record
				f.promised[i] = r.LeaseEnd()
			}
		}
	}
}

func (f *floor) acquire(i int, by byte) error {
	w := f.reads[f.draw.IntN(len(f.reads))]
	s := f.at(f.seats[i])
	ch, err := rule.Acquire(s, rule.AcquireCommand{CandidateID: leadership.CandidateID(by), KeyHash: hash(by), Whole: &w})
	if err != nil {
		return nil //nolint:nilerr // it is refused
	}
	granted := ch.Record.Token > s.Record.Token
	f.seats[i] = apply(s, ch)
	f.note("%c acquires seat %d with revision %d: %v", by, i, w.Record.Revision, granted)
	if granted && i > f.allowed() {
		return fmt.Errorf("seat %d is granted, and there are %d", i, f.allowed())
	}
	if granted {
		delete(f.promised, i)
	}
	return nil
}

func (f *floor) renew(i int) error {
	s := f.at(f.seats[i])
	r := s.Record
	ch, err := rule.Renew(s, rule.Renewal{Election: r.Election, CandidateID: r.LeaderID, KeyHash: r.KeyHash, Token: r.Token})
	if err != nil {
		return nil //nolint:nilerr // it has ended
	}
	f.seats[i] = apply(s, ch)
	now := f.seats[i].Record
	end := now.LeaseEnd()
	if at, ok := f.promised[i]; ok && i > f.allowed() && end.After(at.Add(time.Millisecond)) {
		return fmt.Errorf("the leader of seat %d renews until %s, and was promised %s, when there were fewer seats", i, end, at)
	}
	return nil
}

func TestNoSeatIsGrantedBeyondThoseThatThereAreHoweverLateEveryoneHears(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		f := &floor{
			whole: rule.Snapshot{Record: rule.Record{Election: "gpu"}}, seats: map[int]rule.Snapshot{}, tells: map[int][]rule.Snapshot{},
			counts: map[leadership.Revision]int{}, promised: map[int]time.Time{},
			now: noon, draw: rand.New(rand.NewPCG(seed, 1)),
		}
		for i := range most {
			f.seats[i+1] = rule.Snapshot{Record: rule.Record{Election: leadership.Election("gpu").Seat(i + 1)}}
		}
		f.configure(1 + f.draw.IntN(most))
		f.reads = append(f.reads, f.whole)
		for range 60 {
			var err error
			switch i := 1 + f.draw.IntN(most); f.draw.IntN(8) {
			case 0:
				f.configure(1 + f.draw.IntN(most))
			case 1:
				f.reads = append(f.reads, f.whole)
			case 2, 3:
				f.tell(i)
			case 4, 5:
				err = f.acquire(i, "abc"[f.draw.IntN(3)])
			case 6:
				err = f.renew(i)
			default:
				f.now = f.now.Add(time.Duration(f.draw.IntN(9)) * time.Second)
			}
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(f.log, "\n"))
			}
		}
		if err := f.settle(); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(f.log, "\n"))
		}
	}
}

// settle lets all seats hear of the whole, and their terms end: there are as many as it says then.
func (f *floor) settle() error {
	for i := range most {
		ch, err := rule.Tell(f.at(f.seats[i+1]), f.whole)
		if err != nil {
			return err
		}
		f.seats[i+1] = apply(f.at(f.seats[i+1]), ch)
	}
	f.now = f.now.Add(time.Hour)
	for i := range most {
		s := f.at(f.seats[i+1])
		ch, err := rule.Expire(s)
		if err != nil {
			return err
		}
		if r := apply(s, ch).Record; r.Deleted != (i+1 > f.whole.Record.Policy.Seats) {
			return fmt.Errorf("there are %d seats, and seat %d: deleted %v", f.whole.Record.Policy.Seats, i+1, r.Deleted)
		}
	}
	return nil
}

func TestAnElectionWithSeatsIsNeverLedItself(t *testing.T) {
	t.Parallel()
	s := rule.Snapshot{Record: rule.Record{Election: "gpu"}, Now: noon, Guard: guard}
	ch, err := rule.Apply(held(t, time.Second), leadership.Configure{Config: leadership.Config{Seats: 2}})
	assert.ErrorIs(t, err, leadership.LeaseHeld, "a led election gets seats: %+v", ch)
	if ch, err = rule.Apply(s, leadership.Configure{Config: leadership.Config{Seats: 2}}); err != nil {
		t.Fatal(err)
	}
	s = apply(s, ch)
	_, err = rule.Acquire(s, rule.AcquireCommand{CandidateID: "ann", KeyHash: hash('a')})
	if needs, ok := errors.AsType[*rule.NeedsSeat](err); !ok || needs.Whole.Record != s.Record {
		t.Errorf("it is granted: %v", err)
	}
	for _, o := range []leadership.Order{{Kind: leadership.OrderEvict}, {Kind: leadership.OrderEvict, Token: 1}, {Kind: leadership.OrderAssign, CandidateID: "ann", For: time.Hour}} {
		if _, err := ordered(o)(s); !errors.Is(err, leadership.InvalidArgument) {
			t.Errorf("%s, token %d: %v", o.Kind, o.Token, err)
		}
	}
	assert.EqualValues(t, 2, s.Record.Standing.Untold, "seats have to be told of it")
	told, err := rule.Told(s, s.Record.Revision-1)
	if err != nil || !told.Empty() {
		t.Errorf("a late note that an earlier change was told counts: %+v, %v", told, err)
	}
	for _, c := range []leadership.Config{
		{Seats: leadership.MaxSeats + 1},
		{Seats: -1},
		{Seats: 2, RetireAfter: time.Hour},
		{Seats: 2, Ballot: leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Preempt: true}},
		{Seats: 2, Ballot: leadership.BallotPolicy{Quorum: leadership.QuorumPolicy{Electorate: leadership.NewNames("m1", "m2")}}},
		{Seats: 2, Delegation: leadership.Delegation{Parent: "a"}},
	} {
		if field, err := c.Check(); err == nil || field != "policy.seats" {
			t.Errorf("%+v: %s, %v", c, field, err)
		}
	}
	for name, want := range map[leadership.Election]int{"gpu.1": 1, "gpu.100": 100, "a.b.7": 7, "gpu.0": 0, "gpu.101": 0, "gpu.01": 0, "gpu.": 0, "gpu": 0, "gpu.x": 0, "gpu.+1": 0} {
		if _, n, ok := name.SeatOf(); n != want && ok || ok != (want > 0) {
			t.Errorf("%s is seat %d, %v; want %d", name, n, ok, want)
		}
	}
}

// hall is an election with seats and a strategy, as one instance knows it.
type hall struct {
	t     *testing.T
	whole rule.Snapshot
	seats map[leadership.Election]rule.Snapshot
	now   time.Time
}

// newHall has so many seats, all free for long.
func newHall(t *testing.T, n int, p leadership.BallotPolicy) *hall {
	t.Helper()
	h := &hall{t: t, whole: rule.Snapshot{Record: rule.Record{Election: "gpu"}, Now: noon}, seats: map[leadership.Election]rule.Snapshot{}, now: noon}
	h.whole = play(t, h.whole, 0, applies(leadership.Configure{Config: leadership.Config{Seats: n, LeaseDuration: time.Hour, Ballot: p}}))
	h.whole.Record.Standing.Untold = 0
	for i := range n {
		e := leadership.Election("gpu").Seat(i + 1)
		h.seats[e] = play(t, rule.Snapshot{Record: rule.Record{Election: e}, Now: noon}, 0, func(s rule.Snapshot) (rule.Change, error) { return rule.Tell(s, h.whole) })
	}
	h.now = noon.Add(time.Hour)
	return h
}

// known are the seats as the instance knows them.
func (h *hall) known() (all []leadership.Seat) {
	for n := range len(h.seats) {
		s := at(h.seats[leadership.Election("gpu").Seat(n+1)], h.now)
		l := s.Lease()
		all = append(all, leadership.Seat{Election: l.Election, Leader: l.LeaderID, Since: l.AcquiredAt, Left: l.ExpiresIn})
	}
	return all
}

// asks is a call of the candidate: it bids, and is granted that seat if its turn has come. It
// returns how the call was refused; nil if it was granted.
func (h *hall) asks(c rule.AcquireCommand, seat leadership.Election) *leadership.Error {
	h.t.Helper()
	c.Seats = h.known()
	h.whole.Now = h.now
	ch, err := rule.Acquire(h.whole, c)
	if err == nil {
		h.whole = apply(h.whole, ch)
		h.whole.Now = h.now
		err = h.whole.RefuseWaiting(c)
	}
	if needs, ok := errors.AsType[*rule.NeedsSeat](err); ok {
		c.Whole = &needs.Whole
		s := at(h.seats[seat], h.now)
		if ch, err = rule.Acquire(s, c); err == nil {
			h.seats[seat] = apply(s, ch)
			return nil
		}
	}
	e, ok := errors.AsType[*leadership.Error](err)
	if !ok || e.Detail == "" {
		h.t.Fatalf("%q is not refused with a sentence: %v", c.CandidateID, err)
	}
	return e
}

func (h *hall) releases(seat leadership.Election) {
	h.t.Helper()
	s := at(h.seats[seat], h.now)
	r := s.Record
	ch, err := rule.Apply(s, leadership.Release{LeaseRequest: rule.Renewal{Election: seat, CandidateID: r.LeaderID, KeyHash: r.KeyHash, Token: r.Token}.Request()})
	require.NoError(h.t, err)
	h.seats[seat] = apply(s, ch)
}

// leads is which candidate leads at a seat.
func (h *hall) leads(seat leadership.Election) leadership.CandidateID {
	return h.seats[seat].Record.LeaderID
}

// bid are the candidates that have bid, the best first.
func (h *hall) bid() (all []leadership.CandidateID) {
	for _, b := range h.whole.Record.Bids() {
		all = append(all, b.CandidateID)
	}
	return all
}

func TestSoManyOfTheBestBiddersAsSeatsAreFreeAreGrantedOneAtOnce(t *testing.T) {
	h := newHall(t, 2, byPriority)
	for i, id := range []leadership.CandidateID{"d", "b", "c", "a"} {
		if e := h.asks(bidder(id, int64('z'-id[0])), "gpu.1"); e == nil || e.Lease.Election != "gpu" || e.Reason != leadership.ReasonBallot && e.Reason != leadership.ReasonOutranked {
			t.Fatalf("candidate %d is answered %v before the window is over", i, e)
		}
	}
	if got := h.bid(); !slices.Equal(got, []leadership.CandidateID{"a", "b", "c", "d"}) {
		t.Fatalf("%v have bid", got)
	}
	bids := h.whole
	h.now = h.now.Add(leadership.DefaultWindow)
	for id, want := range map[leadership.CandidateID]time.Duration{"c": rule.BidTurn, "d": 2 * rule.BidTurn} {
		if e := h.asks(bidder(id, int64('z'-id[0])), "gpu.1"); e == nil || e.Reason != leadership.ReasonOutranked || e.RetryAfter != want {
			t.Errorf("%q is answered %v, want a turn in %v", id, e, want)
		}
	}
	if e := h.asks(bidder("b", 'z'-'b'), "gpu.1"); e != nil {
		t.Errorf("of two seats the second best has none: %v", e)
	}
	h.now = h.now.Add(rule.BidTurn / 2)
	if e := h.asks(bidder("c", 'z'-'c'), "gpu.2"); e == nil || e.RetryAfter != rule.BidTurn/2 {
		t.Errorf("one seat is left, and the third is answered %v before the best", e)
	}
	h.now = h.now.Add(rule.BidTurn/2 - time.Millisecond)
	if e := h.asks(bidder("c", 'z'-'c'), "gpu.2"); e == nil {
		t.Error("the third is granted before its turn")
	}
	h.now = h.now.Add(time.Millisecond)
	if e := h.asks(bidder("c", 'z'-'c'), "gpu.2"); e != nil {
		t.Errorf("the best has gone, and keeps the seat from the third: %v", e)
	}
	if h.leads("gpu.1") != "b" || h.leads("gpu.2") != "c" || h.whole.Record != bids.Record {
		t.Errorf("%q and %q lead, and grants have changed the bids: %+v", h.leads("gpu.1"), h.leads("gpu.2"), h.bid())
	}
	if e := h.asks(bidder("d", 'z'-'d'), "gpu.1"); e == nil || e.Reason != leadership.ReasonHeld || h.whole.Record != bids.Record {
		t.Errorf("with no seat free %v, and bids are written: %v", e, h.bid())
	}
	h.now = h.now.Add(time.Second)
	h.releases("gpu.1")
	if e := h.asks(bidder("d", 'z'-'d'), "gpu.1"); e == nil || e.RetryAfter != leadership.DefaultWindow+2*rule.BidTurn {
		t.Errorf("a seat that was just released has no window of its own: %v", e)
	}
	h.now = h.now.Add(leadership.DefaultWindow)
	if e := h.asks(bidder("d", 'z'-'d'), "gpu.1"); e == nil || e.RetryAfter != 2*rule.BidTurn {
		t.Errorf("a, and b that may ask again, are better than d, and it is answered %v", e)
	}
}

func TestABidderThatWasGrantedASeatKeepsNoneFromAnother(t *testing.T) {
	h := newHall(t, 1, byPriority)
	h.asks(bidder("a", 9), "gpu.1")
	h.asks(bidder("b", 8), "gpu.1")
	h.now = h.now.Add(leadership.DefaultWindow)
	if e := h.asks(bidder("a", 9), "gpu.1"); e != nil {
		t.Fatal(e)
	}
	h.whole = play(t, h.whole, 0, func(s rule.Snapshot) (rule.Change, error) { // one more seat
		return rule.Apply(s, leadership.Configure{Config: leadership.Config{Seats: 2, LeaseDuration: time.Hour, Ballot: byPriority}})
	})
	h.whole.Record.Standing.Untold = 0
	if len(h.bid()) != 0 {
		t.Errorf("another configuration keeps the bids %v", h.bid())
	}
	h.seats["gpu.2"] = rule.Snapshot{Record: rule.Record{Election: "gpu.2"}}
	h.asks(bidder("b", 8), "gpu.2")
	h.now = h.now.Add(time.Millisecond)
	other := bidder("a", 9) // another incarnation
	other.KeyHash = hash('x')
	h.asks(other, "gpu.2")
	if got := h.bid(); !slices.Equal(got, []leadership.CandidateID{"a", "b"}) {
		t.Errorf("%v have bid: the new incarnation of a leader counts for nothing", got)
	}
	h.now = h.now.Add(leadership.DefaultWindow)
	if e := h.asks(other, "gpu.2"); e != nil {
		t.Fatal(e)
	}
	h.releases("gpu.1")
	h.now = h.now.Add(leadership.DefaultWindow)
	if e := h.asks(bidder("b", 8), "gpu.1"); e != nil {
		t.Errorf("the only one that waits is kept from a free seat by the bid of a leader: %v", e)
	}
}

func TestAnInstanceBidsForSoManyOfItsLineAsSeatsAreFree(t *testing.T) {
	h := newHall(t, 3, byPriority)
	head := bidder("a", 9)
	head.Instance = 1
	for _, id := range []leadership.CandidateID{"b", "c"} {
		head.Along = append(head.Along, leadership.Standby{CandidateID: id, Candidacy: leadership.Candidacy{Priority: int64('i' - id[0])}})
	}
	h.asks(head, "gpu.1")
	if got := h.bid(); !slices.Equal(got, []leadership.CandidateID{"a", "b", "c"}) {
		t.Fatalf("%v have bid", got)
	}
	written := h.whole.Record
	h.now = h.now.Add(10 * time.Millisecond)
	if h.asks(head, "gpu.1"); h.whole.Record != written {
		t.Errorf("the same bids are written again: %+v", h.bid())
	}
	h.asks(bidder("x", 1), "gpu.1")
	h.now = h.now.Add(leadership.DefaultWindow)
	if e := h.asks(bidder("x", 1), "gpu.2"); e == nil {
		t.Error("a worse one is granted before those that wait behind the best")
	}
	for i, c := range []rule.AcquireCommand{head, bidder("b", 7), bidder("c", 6)} {
		c.Instance = 1
		h.now = h.now.Add(150 * time.Millisecond) // a grant takes its time
		if e := h.asks(bidder("x", 1), leadership.Election("gpu").Seat(i+1)); e == nil {
			t.Errorf("a worse one is granted a seat after %d grants, while those that are better get theirs", i)
		}
		c.Along = nil
		if e := h.asks(c, leadership.Election("gpu").Seat(i+1)); e != nil {
			t.Errorf("%q has no seat: %v", c.CandidateID, e)
		}
	}
}

func TestWhatTheNextDrawForSeatsCountsWith(t *testing.T) {
	for _, strategy := range leadership.Strategies() {
		h := newHall(t, 3, leadership.BallotPolicy{Strategy: strategy, Window: time.Second})
		byID := func(id leadership.CandidateID) rule.AcquireCommand {
			c := bidder(id, int64('z'-id[0]))
			c.Secret = "0123456789abcdef"
			return c
		}
		for _, id := range []leadership.CandidateID{"a", "b", "c", "d"} {
			h.asks(byID(id), "gpu.1")
		}
		h.now = h.now.Add(time.Second)
		ranked := rule.Rank(leadership.BallotPolicy{Strategy: strategy}, rule.NextDraw(new(h.whole).Lease()), h.whole.Record.Bids())
		for i, place := range []int{1, 0} { // the second best comes first
			c := byID(ranked[place].CandidateID)
			if e := h.asks(c, leadership.Election("gpu").Seat(i+1)); e != nil {
				t.Fatalf("%s: %q has no seat: %v", strategy, c.CandidateID, e)
			}
			c.Seats, c.Secret = h.known(), "fedcba9876543210"
			h.whole.Now = h.now
			ch, err := rule.Seated(h.whole, c, h.now)
			want := rule.NextDraw(new(h.whole).Lease())
			switch {
			case place > 0: // the best is granted by the same draw
			case strategy == leadership.StrategyRandom:
				want.Secret = c.Secret
			case strategy == leadership.StrategyRoundRobin:
				want.Last = "b" // of both that were granted
			}
			if ch.Empty() {
				ch = rule.Change{Record: h.whole.Record}
			}
			if draw := rule.NextDraw(new(apply(h.whole, ch)).Lease()); err != nil || len(ch.Events) > 0 || draw != want || draw.Election != "gpu" {
				t.Errorf("%s: after place %d the next draw is %+v, %v; want %+v", strategy, place+1, draw, err, want)
			}
		}
	}
}
