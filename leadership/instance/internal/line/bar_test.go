package line_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
)

// orders gives an order, as an operator does through this instance.
func (i *instance) orders(c leadership.Order) leadership.Lease {
	i.Helper()
	c.Reason, c.Actor = "for the test", "operator"
	l, err := i.Do(i.Context(), c.In(jobs))
	require.NoError(i, err)
	i.learns(l)
	return l
}

// bans lets the candidate not be granted for an hour.
func (i *instance) bans(c leadership.CandidateID) leadership.Lease {
	i.Helper()
	return i.orders(leadership.Order{Kind: leadership.OrderBan, CandidateID: c, For: time.Hour})
}

// limits sets what limits the terms of the election.
func (i *instance) limits(p leadership.TermPolicy) {
	i.Helper()
	_, err := i.Do(i.Context(), leadership.Configure{Election: jobs, Config: leadership.Config{Term: p}})
	require.NoError(i, err)
}

// vacant is an instance with an election that has had a leader.
func (w *cluster) vacant() *instance {
	i := w.instance()
	i.releases(i.leads("ann"))
	return i
}

func TestABannedCandidateDoesNotBlockThoseBehindIt(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.vacant()
		i.bans("bob")
		bob := i.waits(request("bob"))
		i.wants(1, "for bob")
		cy := i.waits(request("cy"))
		cy.after(0, 0)
		leader := cy.leads()
		i.wants(1, "for cy")
		dee := i.waits(request("dee"))
		time.Sleep(time.Second)
		bob.waiting("though it is banned")
		i.releases(leader)
		dee.leads()
		i.wants(1, "for dee, as bob stands aside")
	})
}

func TestABanThatIsOverOrLiftedLetsTheCandidateBeAskedForInItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(*instance)
		least time.Duration
	}{
		"lifted": {func(i *instance) {
			time.Sleep(3 * time.Second)
			i.orders(leadership.Order{Kind: leadership.OrderLift, Override: "ban-3"})
		}, 3 * time.Second},
		"over": {func(*instance) {}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *cluster) {
				i := w.vacant()
				i.orders(leadership.Order{Kind: leadership.OrderBan, CandidateID: "bob", For: 10 * time.Second})
				bob := i.waits(request("bob"))
				i.called()
				c.end(i)
				bob.leads()
				bob.after(c.least, c.least+100*time.Millisecond)
				i.wants(1, "for the grant")
			})
		})
	}
}

func TestAnAssignedElectionIsAskedForItsCandidateWhereverThatStands(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i, other := w.instance(), w.instance()
		leader := i.leads("ann")
		var all []*waiter
		for c := range 100 {
			all = append(all, i.waits(request(leadership.CandidateID(fmt.Sprint("agent-", c)))))
		}
		i.called()
		other.orders(leadership.Order{Kind: leadership.OrderAssign, CandidateID: "agent-57", For: time.Hour})
		time.Sleep(time.Second)
		i.releases(leader)
		g := all[57].leads()
		i.wants(2, "to learn of the order, and for the one that is assigned")
		i.releases(g)
		time.Sleep(time.Second)
		i.wants(0, "for those that are not")
		i.orders(leadership.Order{Kind: leadership.OrderLift, Override: "assign-2"})
		all[0].leads()
		i.wants(1, "once it is lifted")
	})
}

func TestAPausedElectionIsAskedForOnceUntilItsEnd(t *testing.T) {
	const pause = 40 * time.Second
	for name, c := range map[string]struct {
		end         func(*instance)
		least, most time.Duration
	}{
		"resumed": {func(i *instance) {
			time.Sleep(18 * time.Second)
			i.orders(leadership.Order{Kind: leadership.OrderResume})
		}, 20 * time.Second, 20*time.Second + 20*time.Millisecond},
		"over": {func(*instance) {}, pause, pause + 100*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *cluster) {
				i, other := w.instance(), w.vacant()
				other.orders(leadership.Order{Kind: leadership.OrderPause, For: pause})
				began := time.Now()
				time.Sleep(time.Second)
				bob := i.waits(request("bob"))
				for c := range 10 {
					i.waits(request(leadership.CandidateID(fmt.Sprint("agent-", c))))
				}
				i.wants(1, "for the head")
				time.Sleep(time.Second)
				i.wants(0, "while it is paused")
				c.end(other)
				bob.leads()
				if took := bob.ended.Sub(began); took < c.least || took > c.most {
					t.Errorf("bob leads %v after the order, want %v to %v", took, c.least, c.most)
				}
				i.wants(1, "for the grant")
			})
		})
	}
}

func TestAnElectionThatAwaitsApprovalIsAskedForOnceItIsApproved(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i, other := w.instance(), w.instance()
		other.limits(leadership.TermPolicy{Approval: leadership.ApprovalPolicy{Every: 5 * time.Second}})
		leader := i.leads("ann")
		bob := i.waits(request("bob"))
		i.waits(request("cy"))
		time.Sleep(30 * time.Second)
		i.wants(2, "as bob joins, and as the term is over")
		other.orders(leadership.Order{Kind: leadership.OrderApprove, Token: leader.Token})
		bob.leads()
		bob.after(30*time.Second, 30*time.Second+2*w.delay+20*time.Millisecond)
		i.wants(1, "for the grant")
	})
}

// What is lifted while the store's answer is on its way must not be taken for standing.
func TestABanThatIsLiftedDuringTheAttemptIsNotRemembered(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.vacant()
		i.bans("bob")
		slow, sent, release := slowly()
		i.hooks(once(slow))
		bob := i.begins(request("bob"))
		<-sent
		i.orders(leadership.Order{Kind: leadership.OrderLift, Override: "ban-3"})
		i.begins(briefly(request("cy"))) // so that the line takes note of the event
		time.Sleep(2 * brief)
		release()
		bob.leads()
		bob.after(2*brief, 2*brief+2*time.Second)
	})
}

func TestABanCostsAPollWhileEventsAreMissed(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.vacant()
		i.bans("bob")
		i.hub.SetLive(false)
		bob := i.waits(request("bob"))
		time.Sleep(50 * time.Second)
		if n := i.called(); n < 2 || n > 3 {
			t.Errorf("the store was asked %d times in 50 s, want 2 or 3", n)
		}
		i.orders(leadership.Order{Kind: leadership.OrderLift, Override: "ban-3"})
		bob.leads()
	})
}

func TestABanOfAPatternBarsThoseThatWaitAtEachInstance(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i, other := w.instance(), w.instance()
		leader := i.leads("ann")
		here, there := i.waits(request("bad-1")), other.waits(request("bad-2"))
		bob := other.waits(request("bob"))
		time.Sleep(time.Second)
		i.bans("bad-*")
		i.releases(leader)
		leader = bob.leads()
		time.Sleep(time.Second)
		late := other.waits(request("bad-3"))
		other.releases(leader)
		time.Sleep(time.Minute)
		for _, barred := range []*waiter{here, there, late} {
			e := barred.refused(leadership.LeaseHeld) // its wait is over
			if e.Reason != leadership.ReasonBanned || e.Cause.Pattern != "bad-*" || !strings.Contains(e.Detail, `as each candidate of "bad-*"`) {
				t.Errorf("%s was told %+v", barred.candidate, e)
			}
		}
	})
}

func TestABannedPrincipalBarsNoOtherOfTheSameCandidate(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.vacant()
		l, err := i.Do(leadership.WithActor(t.Context(), "dan"), leadership.Order{Election: jobs, Kind: leadership.OrderBan, Principal: "https://issuer|7", For: time.Hour, Reason: "for the test"})
		require.NoError(t, err)
		i.learns(l)
		i.called()
		eve := i.waits(keyed(request("web-1")), "eve", "https://issuer|7")
		other := i.waits(keyed(request("web-1")), "ann", "https://issuer|8")
		other.after(0, 0)
		i.releases(other.leads())
		time.Sleep(time.Second)
		eve.waiting("though it is banned")
		i.wants(3, "for each of them once, and for one more, as it might be the leader")
	})
}

// A fleet that is banned by a pattern may start again and again, under a new id each time.
func TestALineForgetsBannedCandidatesThatHaveGone(t *testing.T) {
	alone(t, func(t *testing.T, i *instance) {
		i.releases(i.leads("ann"))
		i.bans("writer-*")
		i.waits(request("writer-0"))
		for n := range 100 {
			i.waits(request(leadership.CandidateID(fmt.Sprint("writer-1", n)))).cancel()
			time.Sleep(time.Second / 10)
		}
		time.Sleep(10 * time.Second) // no place is kept any more
		if n := i.queue.Barred(jobs); n > 1 {
			t.Errorf("the line remembers %d candidates, and 1 waits", n)
		}
	})
}
