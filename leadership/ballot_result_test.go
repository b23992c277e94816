package leadership_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"regent/leadership"
)

// ballotDetail is the detail of an "acquired" event as any reader may decode it.
type ballotDetail struct {
	Bids     int
	Last     leadership.CandidateID
	Others   []bidDetail
	Place    int
	Present  int
	Secret   string
	Strategy leadership.Strategy
	Winner   bidDetail
}

type bidDetail struct {
	CandidateID leadership.CandidateID
	Draw        string
	Load        int64
	Preferred   int
	Priority    int64
	Since       time.Time
}

func (d bidDetail) bid() leadership.Bid {
	return leadership.Bid{CandidateID: d.CandidateID, Load: d.Load, Preferred: d.Preferred, Priority: d.Priority, Since: d.Since}
}

// variedBidder has something of all that a strategy may count.
func variedBidder(id leadership.CandidateID, i int) leadership.AcquireCommand {
	c := bidder(id, int64(i*7%5))
	c.Load, c.Waited, c.Secret = int64(i*5%7), time.Duration(i*3%11)*time.Millisecond, fmt.Sprintf("%016x", i)
	for n := range i % 4 {
		c.Capabilities = leadership.NewNames(append(c.Capabilities.List(), fmt.Sprintf("cap-%d", n))...)
	}
	return c
}

func ballotOf(strategy leadership.Strategy) leadership.BallotPolicy {
	p := leadership.BallotPolicy{Strategy: strategy, Window: time.Second}
	if strategy == leadership.StrategyCapability {
		p.Prefer = leadership.NewNames("cap-0", "cap-1", "cap-2")
	}
	return p
}

// A reader of the history, who has only the event, comes to the same result with Rank.
func TestAReaderOfTheEventCanRepeatTheBallot(t *testing.T) {
	t.Parallel()
	for _, strategy := range leadership.Strategies() {
		s := balloted(t, ballotOf(strategy))
		for term := range 3 {
			var all []leadership.AcquireCommand
			for i := range 9 {
				c := variedBidder(leadership.CandidateID(fmt.Sprintf("agent-%d", (i*5+term)%9)), i+term)
				all = append(all, c)
				s = tried(t, s, time.Millisecond, asks(c))
			}
			s.Now = s.Now.Add(time.Second)
			secret := string(s.Record.Standing.Secret)
			won := slices.IndexFunc(all, func(c leadership.AcquireCommand) bool { // the best can be granted now
				ch, err := asks(c)(s)
				return err == nil && ch.Heartbeat
			})
			var events []leadership.Event
			s, events = playEvents(t, s, 0, asks(all[won]))
			e := events[len(events)-1]
			var d ballotDetail
			if err := json.Unmarshal([]byte(e.Detail), &d); err != nil {
				t.Fatal(err)
			}
			bids := []leadership.Bid{d.Winner.bid()}
			for _, other := range d.Others {
				bids = append(bids, other.bid())
			}
			draw := leadership.Draw{Election: e.Election, Token: e.Token, Secret: d.Secret, Last: d.Last}
			ranked := ids(leadership.Rank(leadership.BallotPolicy{Strategy: d.Strategy}, draw, bids))
			var shown []leadership.CandidateID
			for _, b := range bids[1:] {
				shown = append(shown, b.CandidateID)
			}
			if shown = slices.Insert(shown, d.Place-1, e.LeaderID); !slices.Equal(ranked, shown) || d.Bids != len(bids) || d.Bids < 2 || d.Winner.CandidateID != e.LeaderID || d.Strategy != strategy {
				t.Errorf("%s, term %d: ranked again they are %v, and the event has %v: %s", strategy, term, ranked, shown, e.Detail)
			}
			if strategy == leadership.StrategyRandom && (d.Secret != secret || d.Secret == "" || strings.Contains(e.Detail, string(s.Record.Standing.Secret))) {
				t.Errorf("the secret of the draw was %s, that of the next is %s, and the event says %s", secret, s.Record.Standing.Secret, e.Detail)
			}
			s = play(t, s, time.Second, releases(s))
		}
	}
}

func TestTheDetailOfAGrantHasRoomForTheLongestNames(t *testing.T) {
	t.Parallel()
	longest := 0
	for _, strategy := range leadership.Strategies() {
		policy := ballotOf(strategy)
		policy.Quorum = leadership.QuorumPolicy{Electorate: leadership.NewNames("a", "b")}
		s := balloted(t, policy)
		named := func(i int) leadership.AcquireCommand {
			c := present(bidder(leadership.CandidateID(strings.Repeat("x", leadership.MaxCandidateLength-2)+fmt.Sprintf("%02d", i)), leadership.MinPriority+int64(i)), "a", "b")
			c.Load, c.Secret = leadership.MaxLoad-int64(i), fmt.Sprintf("%016x", i)
			c.Waited = time.Duration(i)*time.Millisecond + time.Microsecond
			return c
		}
		for round := range 2 {
			for i := range 16 {
				s = tried(t, s, time.Microsecond, asks(named(i)))
			}
			s.Now = s.Now.Add(2 * time.Second)
			i := 0
			for ; ; i++ {
				if ch, err := asks(named(i))(s); err == nil && ch.Heartbeat {
					break
				}
			}
			var events []leadership.Event
			s, events = playEvents(t, s, 0, asks(named(i)))
			n := len(events[0].Detail)
			if longest = max(longest, n); n > leadership.MaxDetailBytes || n == 0 {
				t.Errorf("%s, round %d: %d bytes", strategy, round, n)
			}
			s = play(t, s, time.Second, releases(s))
		}
	}
	if longest < leadership.MaxDetailBytes-2*leadership.MaxCandidateLength {
		t.Errorf("no detail has more than %d bytes, so none was cut", longest)
	}
}
