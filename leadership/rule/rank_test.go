package rule_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
	"regent/leadership/rule"
)

// randomBids are n bids of different candidates, with few different values, so that there are ties.
func randomBids(chance *rand.Rand, n int) []leadership.Bid {
	all := make([]leadership.Bid, n)
	for i := range all {
		all[i] = leadership.Bid{
			CandidateID: leadership.CandidateID(fmt.Sprintf("%c%d", "aZ_."[chance.IntN(4)], i)), Witness: chance.IntN(8) == 0,
			Priority: int64(chance.IntN(3) - 1), Load: int64(chance.IntN(3)), Preferred: chance.IntN(3),
			Since: noon.Add(-time.Duration(chance.IntN(3)) * time.Second),
		}
	}
	return all
}

func ids(bids []leadership.Bid) (all []leadership.CandidateID) {
	for _, b := range bids {
		all = append(all, b.CandidateID)
	}
	return all
}

// The table in the documentation of Rank, line by line: who leads of two.
func TestRankIsAsItsTableSays(t *testing.T) {
	t.Parallel()
	bid := func(id leadership.CandidateID, change func(*leadership.Bid)) leadership.Bid {
		b := leadership.Bid{CandidateID: id, Since: noon}
		if change != nil {
			change(&b)
		}
		return b
	}
	priority := func(p int64) func(*leadership.Bid) { return func(b *leadership.Bid) { b.Priority = p } }
	for _, c := range []struct {
		name     string
		strategy leadership.Strategy
		last     leadership.CandidateID
		bids     []leadership.Bid
		want     string
	}{
		{"longest waited", leadership.StrategyFirstCome, "", []leadership.Bid{bid("a", nil), bid("b", func(b *leadership.Bid) { b.Since = noon.Add(-time.Microsecond) })}, "b a"},
		{"no strategy is the first come", "", "", []leadership.Bid{bid("a", nil), bid("b", func(b *leadership.Bid) { b.Since = noon.Add(-time.Microsecond) })}, "b a"},
		{"waited as long", leadership.StrategyFirstCome, "", []leadership.Bid{bid("b", nil), bid("a", nil)}, "a b"},
		{"priority", leadership.StrategyPriority, "", []leadership.Bid{bid("a", priority(-1)), bid("b", nil), bid("c", priority(leadership.MaxPriority)), bid("d", priority(leadership.MinPriority))}, "c b a d"},
		{"same priority", leadership.StrategyPriority, "", []leadership.Bid{bid("b", priority(1)), bid("a", priority(1))}, "a b"},
		{"same priority, and has waited longer", leadership.StrategyPriority, "", []leadership.Bid{bid("a", nil), bid("b", func(b *leadership.Bid) { b.Since = noon.Add(-time.Second) })}, "a b"},
		{"more preferred", leadership.StrategyCapability, "", []leadership.Bid{bid("a", priority(9)), bid("b", func(b *leadership.Bid) { b.Preferred = 1 })}, "b a"},
		{"as many preferred", leadership.StrategyCapability, "", []leadership.Bid{bid("a", nil), bid("b", priority(1)), bid("c", priority(1))}, "b c a"},
		{"least loaded", leadership.StrategyLeastLoaded, "", []leadership.Bid{bid("a", func(b *leadership.Bid) { b.Load = 2 }), bid("b", func(b *leadership.Bid) { b.Load = 1 })}, "b a"},
		{"same load", leadership.StrategyLeastLoaded, "", []leadership.Bid{bid("b", nil), bid("a", priority(-1))}, "a b"},
		{"the next in turn", leadership.StrategyRoundRobin, "b", []leadership.Bid{bid("a", nil), bid("b", nil), bid("c", nil)}, "c a b"},
		{"after the last comes the first", leadership.StrategyRoundRobin, "c", []leadership.Bid{bid("b", nil), bid("a", nil), bid("c", nil)}, "a b c"},
		{"nobody has led", leadership.StrategyRoundRobin, "", []leadership.Bid{bid("b", nil), bid("a", nil)}, "a b"},
		{"the last leader has gone", leadership.StrategyRoundRobin, "bb", []leadership.Bid{bid("a", nil), bid("b", nil), bid("c", nil)}, "c a b"},
		{"bytes, not letters", leadership.StrategyPriority, "", []leadership.Bid{bid("a", nil), bid("B", nil), bid("_", nil), bid("1", nil)}, "1 B _ a"},
		{"a witness never wins", leadership.StrategyPriority, "", []leadership.Bid{bid("a", nil), bid("w", func(b *leadership.Bid) { b.Witness, b.Priority = true, 9 })}, "a"},
	} {
		got := strings.Trim(fmt.Sprint(ids(rule.Rank(leadership.BallotPolicy{Strategy: c.strategy}, rule.Draw{Election: "jobs", Token: 1, Last: c.last}, c.bids))), "[]")
		assert.Equal(t, c.want, got, c.name)
	}
}

// The draw is what the documentation says, so that it can be repeated with any SHA-256.
func TestARandomDrawIsTheDocumentedHash(t *testing.T) {
	t.Parallel()
	policy, draw := leadership.BallotPolicy{Strategy: leadership.StrategyRandom}, rule.Draw{Election: "jobs", Token: 7, Secret: "0011223344556677"}
	bids := randomBids(rand.New(rand.NewPCG(7, 16)), 12)
	ranked := ids(rule.Rank(policy, draw, bids))
	of := func(id leadership.CandidateID) []byte {
		sum := sha256.Sum256([]byte("jobs\x007\x000011223344556677\x00" + string(id)))
		return sum[:]
	}
	if !slices.IsSortedFunc(ranked, func(a, b leadership.CandidateID) int { return bytes.Compare(of(a), of(b)) }) {
		t.Errorf("%v are not in the order of their draws", ranked)
	}
}

func TestRoundRobinVisitsEachCandidateInTurn(t *testing.T) {
	t.Parallel()
	s := balloted(t, leadership.BallotPolicy{Strategy: leadership.StrategyRoundRobin})
	all := []leadership.CandidateID{"ann", "bob", "cy", "dee"}
	for round := range 3 * len(all) {
		for _, id := range all {
			s = tried(t, s, 0, asks(caller(id)))
		}
		s.Now = s.Now.Add(leadership.DefaultWindow)
		want := all[round%len(all)]
		if s = play(t, s, 0, asks(caller(want))); s.Record.LeaderID != want {
			t.Fatalf("round %d: %q leads, want %q", round, s.Record.LeaderID, want)
		}
		s = play(t, s, time.Second, releases(s))
	}
}
