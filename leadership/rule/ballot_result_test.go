package rule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

func ballotOf(strategy leadership.Strategy) leadership.BallotPolicy {
	p := leadership.BallotPolicy{Strategy: strategy, Window: time.Second}
	if strategy == leadership.StrategyCapability {
		p.Prefer = leadership.NewNames("cap-0", "cap-1", "cap-2")
	}
	return p
}

func TestTheDetailOfAGrantHasRoomForTheLongestNames(t *testing.T) {
	t.Parallel()
	longest := 0
	for _, strategy := range leadership.Strategies() {
		policy := ballotOf(strategy)
		policy.Quorum = leadership.QuorumPolicy{Electorate: leadership.NewNames("a", "b")}
		s := balloted(t, policy)
		named := func(i int) rule.AcquireCommand {
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
			if longest = max(longest, n); n > leadership.MaxDetailBytes || n == 0 || strategy == leadership.StrategyRandom && !strings.Contains(events[0].Detail, `"draw":"`) {
				t.Errorf("%s, round %d: %d bytes", strategy, round, n)
			}
			s = play(t, s, time.Second, releases(s))
		}
	}
	if longest < leadership.MaxDetailBytes-2*leadership.MaxCandidateLength {
		t.Errorf("no detail has more than %d bytes, so none was cut", longest)
	}
}
