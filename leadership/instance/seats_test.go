package instance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/memory"
)

// seats gives the election "gpu" so many seats.
func (f *fleet) seats(s *server, n int) {
	f.Helper()
	_, err := s.Do(f.Context(), leadership.Configure{Election: "gpu", Config: leadership.Config{Seats: n, LeaseDuration: 10 * time.Second}})
	require.NoError(f, err)
	synctest.Wait()
}

// sits is what came of a candidate that asked for a seat.
type sits struct {
	leadership.Grant
	err error
	at  time.Time
}

func (f *fleet) asks(s *server, c leadership.CandidateID, wait time.Duration) <-chan sits {
	f.Helper()
	answer := make(chan sits, 1)
	key := leadership.NewKey()
	ctx := f.Context()
	go func() {
		g, err := s.Acquire(ctx, leadership.AcquireRequest{Election: "gpu", CandidateID: c, Key: &key, Wait: wait})
		answer <- sits{g, err, time.Now()}
	}()
	synctest.Wait()
	return answer
}

// held are the seats that are led, by the store.
func (f *fleet) held() (all map[leadership.Election]leadership.CandidateID) {
	f.Helper()
	page, err := f.store.List(f.Context(), "gpu.", "", 1000)
	require.NoError(f, err)
	all = make(map[leadership.Election]leadership.CandidateID)
	for _, s := range page.Snapshots {
		if s.Live() {
			all[s.Record.Election] = s.Record.LeaderID
		}
	}
	return all
}

func lease(g leadership.Grant) leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: g.Election, CandidateID: g.LeaderID, Key: g.Key, Token: g.Token}
}

func TestASeatThatGetsFreeIsTheNextWaitersAtWhicheverInstance(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		f.seats(a, 3)
		var led []leadership.Grant
		for i, s := range []*server{a, b, a} {
			g := <-f.asks(s, leadership.CandidateID(fmt.Sprint("c", i)), 0)
			if of, _, _ := g.Election.SeatOf(); g.err != nil || of != "gpu" || g.Seat == 0 {
				t.Fatalf("got %+v, %v; want a seat", g.Grant.Lease, g.err)
			}
			led = append(led, g.Grant)
		}
		if len(f.held()) != 3 {
			t.Fatalf("led are %v, want 3 seats", f.held())
		}
		if g := <-f.asks(b, "late", 0); !errors.Is(g.err, leadership.LeaseHeld) {
			t.Errorf("a fourth candidate got %+v, %v", g.Grant, g.err)
		}
		first, second := f.asks(a, "w1", time.Minute), f.asks(b, "w2", time.Minute)
		time.Sleep(3 * time.Second)
		for range 8 { // all renew, and waiting costs nothing
			for i := range led {
				_, err := []*server{a, b, a}[i].Renew(f.Context(), lease(led[i]))
				require.NoError(t, err)
			}
			a.asks.Take()
			b.asks.Take()
			time.Sleep(3 * time.Second)
			for _, s := range []*server{a, b} {
				if n := s.asks.Take(); n["Get"]+n["Update"] > 0 {
					t.Errorf("waiting for a seat cost %v", n)
				}
			}
		}
		began := time.Now()
		_, err := b.Do(f.Context(), leadership.Release{LeaseRequest: lease(led[1])})
		require.NoError(t, err)
		var next sits
		select {
		case next = <-first:
			first = nil
		case next = <-second:
			second = nil
		}
		if next.err != nil || next.Election != led[1].Election || next.Token != led[1].Token+1 || next.at.Sub(began) > time.Second {
			t.Errorf("after %v: %+v, %v; want seat %s under the next token", next.at.Sub(began), next.Grant.Lease, next.err, led[1].Election)
		}
		var last sits // the others stop renewing, and the one that still waits gets the first of their seats
		if first != nil {
			last = <-first
		} else {
			last = <-second
		}
		if last.err != nil || last.Seat == 0 || last.Election == next.Election || len(f.held()) > 3 {
			t.Errorf("%+v, %v; want a seat of those that are over, and %v", last.Grant.Lease, last.err, f.held())
		}
		t.Log(last.at.Sub(began), f.reads.Take())
	})
}

func TestAReplyThatWasLostCostsNoSecondSeat(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		f.seats(a, 3)
		key := leadership.NewKey()
		var first leadership.Grant
		for i, s := range []*server{a, b, a, b} {
			for _, wait := range []time.Duration{0, time.Minute} {
				g, err := s.Acquire(f.Context(), leadership.AcquireRequest{Election: "gpu", CandidateID: "ann", Key: &key, Wait: wait})
				if i == 0 && wait == 0 {
					first = g
				}
				if err != nil || g.Election != first.Election || g.Token != first.Token {
					t.Fatalf("asked again it got %s under token %d, %v; want %s under %d", g.Election, g.Token, err, first.Election, first.Token)
				}
			}
		}
	})
}

func TestWithFewerSeatsTheirLeadersGoOnUntilTheEndTheyWerePromised(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		f.seats(a, 3)
		var led []leadership.Grant
		for i := range 3 {
			g := <-f.asks(b, leadership.CandidateID(fmt.Sprint("c", i)), 0)
			if g.err != nil {
				t.Fatal(g.err)
			}
			led = append(led, g.Grant)
		}
		waits := f.asks(b, "waits", time.Minute)
		time.Sleep(4 * time.Second)
		f.seats(a, 1)
		for _, g := range led {
			l, err := b.Renew(context.Background(), lease(g))
			if stays := g.Seat == 1; err != nil || stays != (l.EndsBecause == "") || !stays && !l.LeaseExpiration.Equal(g.LeaseExpiration) {
				t.Errorf("the leader of seat %d renews until %v (%s), %v; it was promised %v", g.Seat, l.LeaseExpiration, l.EndsBecause, err, g.LeaseExpiration)
			}
		}
		time.Sleep(7 * time.Second)
		if h := f.held(); len(h) != 1 || h["gpu.1"] == "" {
			t.Errorf("led are %v, want seat 1 alone", h)
		}
		direct, err := a.Acquire(f.Context(), leadership.AcquireRequest{Election: "gpu.3", CandidateID: "bob"})
		if !errors.Is(err, leadership.ElectionDeleted) || !strings.Contains(err.Error(), `acquire "gpu"`) {
			t.Errorf("a seat that there is no more is granted to %+v, %v", direct, err)
		}
		f.seats(b, 2)
		if g := <-waits; g.err != nil || g.Seat == 0 || len(f.held()) > 2 {
			t.Errorf("with another seat the one that waits has %+v, %v, and led are %v", g.Grant.Lease, g.err, f.held())
		}
		_, err = a.Do(f.Context(), leadership.Configure{Election: "gpu", Config: leadership.Config{}})
		assert.ErrorIs(t, err, leadership.InvalidArgument, "without seats")
		_, err = a.Do(f.Context(), leadership.Configure{Election: "gpu.1", Config: leadership.Config{LockDelay: time.Second}})
		assert.ErrorIs(t, err, leadership.InvalidArgument, "a seat alone is configured")
	})
}

func TestAnOrderForAllSeatsHoldsOnceItIsAnswered(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		f.seats(a, 2)
		one := <-f.asks(b, "ann", 0)
		drain := leadership.Order{Election: "gpu", Kind: leadership.OrderPause, Mode: leadership.PauseDrain, For: time.Hour, Reason: "maintenance", Actor: "op"}
		_, err := a.Do(f.Context(), drain)
		require.NoError(t, err)
		if l, err := b.Renew(f.Context(), lease(one.Grant)); err != nil || l.EndsBecause != leadership.EndsDrained {
			t.Errorf("drained, the leader of a seat goes on until %s, %v", l.EndsBecause, err)
		}
		for _, e := range []leadership.Election{"gpu", "gpu.1", "gpu.2"} {
			_, err := b.Acquire(f.Context(), leadership.AcquireRequest{Election: e, CandidateID: "bob"})
			if refused, ok := errors.AsType[*leadership.Error](err); !ok || refused.Code != leadership.LeaseHeld || refused.Reason == leadership.ReasonHeld && e != one.Election {
				t.Errorf("paused, %s is granted: %v", e, err)
			}
		}
		waits := f.asks(b, "bob", time.Minute)
		_, err = a.Do(f.Context(), leadership.Order{Election: "gpu", Kind: leadership.OrderResume, Reason: "done", Actor: "op"})
		require.NoError(t, err)
		if g := <-waits; g.err != nil {
			t.Errorf("resumed: %v", g.err)
		}
		if l, err := b.Renew(f.Context(), lease(one.Grant)); err != nil || l.EndsBecause != "" {
			t.Errorf("resumed, the leader goes on until %s, %v", l.EndsBecause, err)
		}
		x, err := a.Explain(f.Context(), leadership.ExplainRequest{Election: "gpu", CandidateID: "eve"})
		if err != nil || x.Leads || len(x.Causes) == 0 || x.Causes[0].Code != leadership.ReasonHeld {
			t.Errorf("why eve has no seat: %+v, %v", x, err)
		}
		if x, err = a.Explain(f.Context(), leadership.ExplainRequest{Election: "gpu", CandidateID: "ann"}); err != nil || !x.Leads || x.Election != "gpu" || x.Seat != one.Seat {
			t.Errorf("why ann: %+v, %v", x, err)
		}
	})
}

func TestWhyNoSeatIsGrantedSaysTheHaltThatIsOnAllSeatsThatAreFree(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a := f.start("a")
		f.seats(a, 2)
		led := (<-f.asks(a, "ann", 0)).Grant
		free := led.Whole().Seat(3 - led.Seat)
		for pattern, want := range map[leadership.Election]leadership.Reason{
			"gp*": leadership.ReasonHalted, "gpu.*": leadership.ReasonHalted,
			free + "*": leadership.ReasonHeld, led.Election + "*": leadership.ReasonNotAsking,
		} {
			order := leadership.Order{Election: pattern, Kind: leadership.OrderHalt, For: time.Hour, Reason: "poisoned", Actor: "op"}
			_, err := a.Do(f.Context(), order)
			require.NoError(f, err)
			synctest.Wait()
			x, err := a.Explain(f.Context(), leadership.ExplainRequest{Election: "gpu", CandidateID: "eve"})
			if err != nil || x.Leads || x.Causes[0].Code != want {
				f.Fatalf("in the halt of %s: %+v, %v; want %s", pattern, x, err, want)
			}
			if first := x.Causes[0]; want == leadership.ReasonHalted &&
				(first.Elections != pattern || first.Because != "poisoned" || first.Left <= 0 || len(x.Causes) > 1 && x.Causes[1].Code == want) {
				f.Errorf("in the halt of %s: %+v", pattern, x.Causes)
			}
			order.Kind, order.For = leadership.OrderUnhalt, 0
			_, err = a.Do(f.Context(), order)
			require.NoError(f, err)
		}
	})
}

func TestAnElectionThatIsUsedBecomesNoSeat(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a := f.start("a")
		_, err := a.Do(f.Context(), leadership.Configure{Election: "gpu.2", Config: leadership.Config{LockDelay: time.Second}})
		require.NoError(t, err)
		two := leadership.Configure{Election: "gpu", Config: leadership.Config{Seats: 2}}
		_, err = a.Do(f.Context(), two)
		assert.ErrorIs(t, err, leadership.InvalidArgument, "a configured election becomes a seat")
		_, err = a.Get(f.Context(), "gpu")
		assert.ErrorIs(t, err, leadership.NotFound, "refused, it has changed something")
		_, err = a.Do(f.Context(), leadership.Delete{Election: "gpu.2"})
		require.NoError(t, err)
		f.seats(a, 2)
		one := <-f.asks(a, "ann", 0)
		for _, c := range []leadership.Command{
			leadership.Delete{Election: "gpu.1", Force: true},
			leadership.Order{Election: "gpu.1", Kind: leadership.OrderPause, For: time.Hour, Reason: "r", Actor: "op"},
			leadership.Configure{Election: "gpu.1", Config: leadership.Config{Seats: 2}},
		} {
			if _, err := a.Do(f.Context(), c); !errors.Is(err, leadership.InvalidArgument) {
				t.Errorf("%s of one seat: %v", c.Name(), err)
			}
		}
		_, err = a.Do(f.Context(), leadership.HandOver{LeaseRequest: lease(one.Grant), To: "bob", Within: time.Minute})
		assert.ErrorIs(t, err, leadership.NotEligible, "a seat is handed over")
		if l, err := a.Do(f.Context(), leadership.Delete{Election: "gpu"}); !errors.Is(err, leadership.LeaseHeld) {
			t.Fatalf("though a seat is led: %+v, %v", l, err)
		}
		if l, err := a.Do(f.Context(), leadership.Delete{Election: "gpu", Force: true}); err != nil || !l.Deleted {
			t.Fatalf("%+v, %v", l, err)
		}
		if l, err := a.Renew(f.Context(), lease(one.Grant)); err != nil || l.EndsBecause != leadership.EndsSeats {
			t.Errorf("without the election its leader goes on until %s, %v", l.EndsBecause, err)
		}
	})
}

func TestOneMoreSeatWakesThoseWhoWait(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a := f.start("a")
		f.seats(a, 1)
		one := <-f.asks(a, "ann", 0)
		waits := f.asks(a, "bob", time.Minute)
		time.Sleep(5 * time.Second)
		_, err := a.Renew(f.Context(), lease(one.Grant))
		require.NoError(t, err)
		began := time.Now()
		f.seats(a, 2)
		if g := <-waits; g.err != nil || g.at.Sub(began) > 2*time.Second {
			t.Errorf("after %v: %+v, %v", g.at.Sub(began), g.Grant.Lease, g.err)
		}
	})
}

func TestMembersAreThoseOfAllSeats(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a := f.start("a")
		f.seats(a, 2)
		status := func(want leadership.MembersStatus, all ...string) {
			f.Helper()
			m, err := a.Members(f.Context(), "gpu")
			var got []string
			for _, one := range m.Members {
				got = append(got, fmt.Sprint(one.ID, " ", one.Role, " ", one.Seat))
			}
			if diff := cmp.Diff(all, got); diff != "" || err != nil || m.Status != want || m.Seats != 2 || m.Participation != 1 {
				t.Errorf("%+v, %v; want status %s and\n%s", m, err, want, diff)
			}
		}
		status(leadership.MembersNoLeader)
		zoe := <-f.asks(a, "zoe", 0)
		status(leadership.MembersHealthy, fmt.Sprint("zoe leader ", zoe.Seat))
		ann := <-f.asks(a, "ann", 0)
		bob := f.asks(a, "bob", time.Minute)
		join := leadership.JoinRequest{Election: ann.Election, CandidateID: "fay", Role: leadership.RoleFollower, TTL: time.Minute, SeenToken: 1}
		_, err := a.Join(f.Context(), join)
		require.NoError(t, err)
		status(leadership.MembersHealthy, fmt.Sprint("ann leader ", ann.Seat), "bob candidate 0", fmt.Sprint("fay follower ", ann.Seat), fmt.Sprint("zoe leader ", zoe.Seat))
		_, err = a.Do(f.Context(), leadership.Release{LeaseRequest: lease(ann.Grant)})
		require.NoError(t, err)
		if g := <-bob; g.Election != ann.Election {
			t.Fatal(g)
		}
		m, err := a.Members(f.Context(), "gpu")
		if err != nil || m.Status != leadership.MembersDiverged { // fay follows ann
			t.Errorf("%+v, %v; want it diverged", m, err)
		}
	})
}

func TestALocalServerTellsSeatsAtItsStartWhatTheOneBeforeDidNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Config{})
		s := service.New(store)
		_, err := s.Do(t.Context(), leadership.Configure{Election: "gpu", Config: leadership.Config{Seats: 1}})
		require.NoError(t, err)
		g, err := s.Acquire(t.Context(), leadership.AcquireRequest{Election: "gpu", CandidateID: "ann"})
		require.NoError(t, err)
		dies := func(s rule.Snapshot) (rule.Change, error) { return rule.Apply(s, leadership.Delete{Force: true}) }
		_, err = store.Update(t.Context(), "gpu", rule.Expect{}, dies)
		require.NoError(t, err)
		i := alone(t, store)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); i.Run(ctx) }()
		synctest.Wait()
		if l, err := i.Renew(t.Context(), lease(g)); err != nil || l.EndsBecause != leadership.EndsSeats {
			t.Errorf("the leader of a seat of a deleted election goes on (%q), %v", l.EndsBecause, err)
		}
		stop()
		<-ended
	})
}

// ballot gives the election "gpu" so many seats, and a policy of who should lead.
func (f *fleet) ballot(s *server, n int, b leadership.BallotPolicy) {
	f.Helper()
	_, err := s.Do(f.Context(), leadership.Configure{Election: "gpu", Config: leadership.Config{Seats: n, LeaseDuration: 10 * time.Second, Ballot: b}})
	require.NoError(f, err)
	synctest.Wait()
}

// bids lets a candidate with that priority wait for a seat, as long as the test lasts.
func (f *fleet) bids(s *server, c leadership.CandidateID, priority int64) {
	f.Helper()
	key := leadership.NewKey()
	ctx := f.Context()
	go func() {
		_, _ = s.Acquire(ctx, leadership.AcquireRequest{Election: "gpu", CandidateID: c, Key: &key, Wait: time.Minute, Candidacy: leadership.Candidacy{Priority: priority}})
	}()
}

// leading are the candidates that lead at seats, in their order.
func (f *fleet) leading() (all []string) {
	f.Helper()
	for _, c := range f.held() {
		all = append(all, string(c))
	}
	slices.Sort(all)
	return all
}

func TestTheBestThatWaitAtAllInstancesGetTheSeatsThatAreFreeAtOnce(t *testing.T) {
	for _, strategy := range []leadership.Strategy{leadership.StrategyPriority, leadership.StrategyRandom, leadership.StrategyRoundRobin} {
		t.Run(string(strategy), func(t *testing.T) {
			inFleet(t, func(f *fleet) {
				a, b := f.start("a"), f.start("b")
				f.ballot(a, 3, leadership.BallotPolicy{Strategy: strategy})
				for i, c := range []leadership.CandidateID{"c1", "c5", "c2", "c8", "c9", "c7"} { // three of the best at one of them
					f.bids([]*server{a, b}[i/3], c, int64(c[1]-'0'))
				}
				time.Sleep(2 * time.Second)
				led := f.leading()
				want := map[leadership.Strategy][]string{leadership.StrategyPriority: {"c7", "c8", "c9"}, leadership.StrategyRoundRobin: {"c1", "c2", "c5"}}[strategy]
				if len(led) != 3 || want != nil && !slices.Equal(led, want) {
					f.Errorf("of the candidates that wait %v lead, want %v", led, want)
				}
				for seat, c := range f.held() {
					f.requireChoice(seat, c)
				}
			})
		})
	}
}

// requireChoice repeats the ranking that the grant of a seat tells of.
func (f *fleet) requireChoice(seat leadership.Election, c leadership.CandidateID) {
	f.Helper()
	events, err := f.store.Events(f.Context(), seat, 0, 100)
	require.NoError(f, err)
	for _, e := range events {
		if e.Type != leadership.EventAcquired || e.LeaderID != c {
			continue
		}
		d := e.ReadDetail()
		if d.Winner == nil || d.Winner.CandidateID != c || d.Place < 1 || d.Place > 3 {
			f.Errorf("the grant of %s to %q says %s", seat, c, e.Detail)
		}
		return
	}
	f.Errorf("no event tells of the grant of %s to %q", seat, c)
}

func TestASeatThatGetsFreeIsForTheBestThatWaits(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		f.ballot(a, 2, leadership.BallotPolicy{Strategy: leadership.StrategyPriority})
		f.bids(a, "low", 1)
		f.bids(b, "mid", 2)
		time.Sleep(2 * time.Second)
		f.bids(a, "high", 9)
		f.bids(b, "next", 3)
		f.bids(b, "last", 1)
		time.Sleep(time.Second)
		for _, s := range []*server{a, b} {
			s.asks.Take()
		}
		time.Sleep(3 * time.Second)
		for _, s := range []*server{a, b} {
			if n := s.asks.Take(); n["Get"]+n["Update"] > 0 {
				f.Errorf("waiting for a seat cost %v", n)
			}
		}
		time.Sleep(10 * time.Second) // the leases of both have run out
		if led := f.leading(); !slices.Equal(led, []string{"high", "next"}) {
			f.Errorf("%v lead, want the two best", led)
		}
	})
}

func TestAWholeWithAStrategyRefusesWhatWouldPassTheBallot(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a := f.start("a")
		for _, p := range []leadership.BallotPolicy{
			{Strategy: leadership.StrategyPriority, Preempt: true},
			{Quorum: leadership.QuorumPolicy{Electorate: leadership.NewNames("m1", "m2", "m3")}},
		} {
			_, err := a.Do(f.Context(), leadership.Configure{Election: "gpu", Config: leadership.Config{Seats: 2, Ballot: p}})
			assert.ErrorIs(f, err, leadership.InvalidArgument, "seats with %+v", p)
		}
		f.ballot(a, 2, leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Require: leadership.NewNames("cuda")})
		for _, e := range []leadership.Election{"gpu", "gpu.1"} {
			_, err := a.Acquire(f.Context(), leadership.AcquireRequest{Election: e, CandidateID: "ann"})
			assert.ErrorIs(f, err, leadership.NotEligible, "%s is granted to a candidate without what the policy requires", e)
		}
		able := leadership.AcquireRequest{Election: "gpu.1", CandidateID: "bob", Candidacy: leadership.Candidacy{Capabilities: leadership.NewNames("cuda")}}
		if _, err := a.Acquire(f.Context(), able); !errors.Is(err, leadership.NotEligible) || !strings.Contains(err.Error(), `acquire "gpu"`) {
			f.Errorf("a seat is asked for by its own name: %v", err)
		}
		able.Election, able.Wait = "gpu", time.Minute
		g, err := a.Acquire(f.Context(), able)
		if err != nil || g.Seat == 0 {
			f.Fatalf("%+v, %v", g, err)
		}
		able.Election, able.Wait, able.Key = "gpu", 0, &g.Key
		if again, err := a.Acquire(f.Context(), able); err != nil || again.Election != g.Election || again.Token != g.Token {
			f.Errorf("asked again it got %s under %d, %v; want %s under %d", again.Election, again.Token, err, g.Election, g.Token)
		}
	})
}
