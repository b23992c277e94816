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
	if !errors.Is(err, leadership.LeaseHeld) {
		t.Errorf("a led election gets seats: %+v, %v", ch, err)
	}
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
	if s.Record.Standing.Untold != 2 {
		t.Errorf("%d seats have to be told of it, want 2", s.Record.Standing.Untold)
	}
	told, err := rule.Told(s, s.Record.Revision-1)
	if err != nil || !told.Empty() {
		t.Errorf("a late note that an earlier change was told counts: %+v, %v", told, err)
	}
	for _, c := range []leadership.Config{
		{Seats: leadership.MaxSeats + 1},
		{Seats: -1},
		{Seats: 2, RetireAfter: time.Hour},
		{Seats: 2, Ballot: leadership.BallotPolicy{Strategy: leadership.StrategyPriority}},
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
