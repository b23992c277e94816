package line_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
)

// course is a random course of candidates that come and go at several instances.
type course struct {
	*cluster
	random  *rand.Rand
	policy  leadership.BallotPolicy
	waiting []*waiter
	leader  leadership.Grant
	at      *instance // through which the leader was granted
	number  int
}

func (c *course) some() *instance { return c.instances[c.random.IntN(len(c.instances))] }

// comes lets a candidate come.
func (c *course) comes() {
	c.number++
	r := rated(leadership.CandidateID(fmt.Sprint("agent-", c.number)), c.random.Int64N(20))
	r.Load, r.LeaseDuration = c.random.Int64N(20), time.Hour
	if c.random.IntN(2) == 0 {
		r.Capabilities = "gpu"
	}
	if c.random.IntN(2) == 0 {
		r = keyed(r)
	}
	w := c.some().begins(r)
	w.says = r.Candidacy
	c.waiting = append(c.waiting, w)
}

// goes lets one that waits go.
func (c *course) goes() {
	if n := len(c.waiting); n > 3 {
		at := c.random.IntN(n)
		c.waiting[at].cancel()
		<-c.waiting[at].done
		c.answered()
	}
}

// answered sorts out those that do not wait any more, and notes the leader.
func (c *course) answered() {
	var still []*waiter
	for _, w := range c.waiting {
		select {
		case <-w.done:
			if w.err == nil && w.grant.Token > c.leader.Token {
				c.leader, c.at = w.grant, w.instance
			}
		default:
			still = append(still, w)
		}
	}
	c.waiting = still
}

// led waits until one leads by a later token, and reports whether that was in time.
func (c *course) led(after leadership.Token, within time.Duration) bool {
	for began := time.Now(); time.Since(began) <= within; time.Sleep(time.Millisecond) {
		synctest.Wait()
		if c.answered(); c.leader.Token > after {
			return true
		}
	}
	return false
}

// Whatever comes and goes during a ballot, one leads soon after it, and the store is not asked
// again and again.
func TestABallotEndsWhateverComesAndGoes(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			in(t, func(t *testing.T, w *cluster) {
				c := &course{cluster: w, random: rand.New(rand.NewPCG(seed, 16))}
				for range 1 + c.random.IntN(3) {
					w.instance()
				}
				strategies := leadership.Strategies()
				c.policy.Strategy = strategies[c.random.IntN(len(strategies))]
				if c.random.IntN(4) == 0 {
					c.policy.Require = "gpu"
				}
				if s := c.policy.Strategy; c.random.IntN(2) == 0 && (s == leadership.StrategyPriority || s == leadership.StrategyLeastLoaded) {
					c.policy.Preempt = true
				}
				c.some().elects(c.policy)
				for range 20 {
					c.run(t)
				}
			})
		})
	}
}

// run is one term: a ballot, some of whose candidates come late or go, and a release.
func (c *course) run(t *testing.T) {
	before := c.leader.Token
	for range 4 {
		c.comes()
	}
	for range c.random.IntN(6) {
		time.Sleep(time.Duration(c.random.IntN(100)) * time.Millisecond)
		if c.random.IntN(2) == 0 {
			c.comes()
		} else {
			c.goes()
		}
	}
	for range 10 { // enough for one that has all that is required
		c.comes()
	}
	if !c.led(before, 2*time.Second) {
		t.Fatalf("nobody leads after token %d: %d wait at %d instances", before, len(c.waiting), len(c.instances))
	}
	calls := int64(0)
	for _, i := range c.instances {
		calls += i.called()
	}
	if calls > 80 {
		t.Fatalf("the store was asked %d times in a term", calls)
	}
	time.Sleep(time.Duration(c.random.IntN(2000)) * time.Millisecond)
	c.answered()
	l, err := c.at.Release(context.Background(), of(c.leader))
	if err != nil {
		t.Fatal(err)
	}
	c.at.learns(l)
}

// Of all that wait when nobody leads any more, at whatever instance, the best leads.
func TestTheBestOfAllThatWaitLeadsByAnyStrategy(t *testing.T) {
	for _, s := range leadership.Strategies() {
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(s, " seed=", seed), func(t *testing.T) {
				in(t, func(t *testing.T, w *cluster) {
					c := &course{cluster: w, random: rand.New(rand.NewPCG(seed, 17)), policy: leadership.BallotPolicy{Strategy: s, Window: window}}
					for range 3 {
						w.instance()
					}
					if s == leadership.StrategyCapability {
						c.policy.Prefer = "gpu"
					}
					c.some().elects(c.policy)
					c.comes()
					if !c.led(0, time.Second) {
						t.Fatal("the first does not lead")
					}
					for range 20 {
						c.comes()
						time.Sleep(time.Millisecond)
					}
					for range 12 {
						c.takeover(t)
					}
				})
			})
		}
	}
}

// takeover is a release, and a ballot in which no candidate comes or goes.
func (c *course) takeover(t *testing.T) {
	time.Sleep(2 * time.Second)
	var bids []leadership.Bid
	for _, w := range c.waiting {
		bids = append(bids, w.says.Bid(w.candidate, c.policy, w.began))
	}
	before := c.leader
	l, err := c.some().Release(t.Context(), of(before))
	if err != nil {
		t.Fatal(err)
	}
	released := time.Now()
	if !c.led(before.Token, window+leadership.BidTurn) {
		t.Fatalf("nobody leads %v after the release", time.Since(released))
	}
	events, err := c.at.Events(t.Context(), leadership.EventsRequest{Election: jobs, After: l.Revision})
	if err != nil {
		t.Fatal(err)
	}
	var result ballotResult
	if err := json.Unmarshal([]byte(events[0].Detail), &result); err != nil {
		t.Fatal(err)
	}
	draw := leadership.Draw{Election: jobs, Token: before.Token + 1, Secret: result.Secret, Last: before.LeaderID}
	if best := leadership.Rank(c.policy, draw, bids)[0].CandidateID; c.leader.LeaderID != best {
		t.Errorf("token %d: %s leads, and %s is the best; %s", c.leader.Token, c.leader.LeaderID, best, events[0].Detail)
	}
}
