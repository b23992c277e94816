package instance_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance"
)

// asked is what came of a call that waits.
type asked struct {
	leadership.Proposal
	err  error
	took time.Duration
}

// propose proposes through the instance, and waits so long for the decision.
func (b *books) propose(i *instance.Instance, id leadership.ProposalID, wait time.Duration) <-chan asked {
	b.Helper()
	answer := make(chan asked, 1)
	go func() {
		began := time.Now()
		p, err := i.Propose(b.Context(), leadership.ProposeRequest{Election: "jobs", CandidateID: "dora", ID: id, Kind: "scale", Wait: wait})
		answer <- asked{p, err, time.Since(began)}
	}()
	synctest.Wait()
	return answer
}

func (b *books) decides(i *instance.Instance, id leadership.ProposalID) {
	b.Helper()
	_, err := i.Decide(b.Context(), leadership.DecideRequest{LeaseRequest: b.holder(), ID: id, Verdict: leadership.ProposalAccepted})
	require.NoError(b, err)
}

// told expects the decision, so long after it was made at most.
func (b *books) told(answer <-chan asked, within time.Duration) {
	b.Helper()
	began := time.Now()
	a := <-answer
	if late := time.Since(began); a.err != nil || a.Decision == nil || a.Decision.Verdict != leadership.ProposalAccepted || late > within {
		b.Errorf("after %v the proposer is told %+v, %v; want the decision within %v", late, a.Proposal, a.err, within)
	}
}

func TestAProposerIsToldWithinASecondOfADecisionAtAnotherInstance(t *testing.T) {
	withJournals(t, func(b *books) {
		here, looks, _ := b.start("a")
		there, _, _ := b.start("b")
		b.leads(there)
		time.Sleep(2 * time.Second)
		answer := b.propose(here, "p", time.Minute)
		time.Sleep(50 * time.Second)
		looks.wants(b.T, 0, 0, "while it waits")
		b.decides(there, "p")
		b.told(answer, time.Second)
		looks.wants(b.T, 1, 0, "for the decision")
		answer = b.propose(there, "q", time.Minute) // where the leader is
		b.decides(there, "q")
		b.told(answer, 0)
		if a := <-b.propose(here, "p", time.Minute); a.err != nil || a.Decision == nil || a.took > 0 {
			b.Errorf("proposed again it is answered %+v", a)
		}
	})
}

func TestAProposerIsToldOfADecisionWithoutHearingTheOtherInstances(t *testing.T) {
	withJournals(t, func(b *books) {
		s := b.startWith("a", b.store)
		there, _, _ := b.start("b")
		b.leads(there)
		s.line.setCut(true)
		answer := b.propose(s.Instance, "p", time.Minute)
		time.Sleep(10 * time.Second)
		b.decides(there, "p")
		b.told(answer, time.Second)
	})
}

func TestAProposerThatWaitsInVainHasAnOpenProposal(t *testing.T) {
	withJournals(t, func(b *books) {
		i, _, _ := b.start("a")
		b.leads(i)
		for id, wait := range map[leadership.ProposalID]time.Duration{"p": 0, "q": 30 * time.Second} {
			if a := <-b.propose(i, id, wait); a.err != nil || a.Decision != nil || a.took != wait {
				b.Errorf("it is answered %+v, want an open proposal after %v", a, wait)
			}
		}
		answer := b.propose(i, "r", time.Minute)
		cause := fmt.Errorf("draining: %w", leadership.StoreUnavailable)
		i.Drain(b.Context(), cause)
		if a := <-answer; a.err != cause {
			b.Errorf("when the instance drains it is answered %+v", a)
		}
	})
}

// The leader is told over its stream, at whichever instance that is, once for each call of a
// proposer, and of no decision.
func TestTheLeaderHearsThatItIsAsked(t *testing.T) {
	withJournals(t, func(b *books) {
		here, _, _ := b.start("a")
		there, _, _ := b.start("b")
		b.leads(there)
		time.Sleep(2 * time.Second)
		for name, i := range map[string]*instance.Instance{"here": here, "there": there} {
			_, w, err := i.Watch(b.Context(), leadership.WatchRequest{Election: "jobs"})
			require.NoError(b, err)
			heard := func(want int) {
				b.Helper()
				ctx, cancel := context.WithTimeout(b.Context(), time.Second)
				defer cancel()
				n := 0
				for ctx.Err() == nil {
					news, err := w.Listen(ctx)
					if err != nil && !errors.Is(err, context.DeadlineExceeded) {
						b.Fatal(err)
					}
					for _, m := range news.Members {
						if m.Change == leadership.MemberAsked && m.ID == "ann" && m.SeenToken == b.leader.Token {
							n++
						}
					}
				}
				if n != want {
					b.Errorf("%s: within a second it is asked %d times, want %d", name, n, want)
				}
			}
			id := leadership.ProposalID("to-" + name)
			<-b.propose(here, id, 0)
			heard(1)
			<-b.propose(here, id, 0)
			heard(1)
			b.decides(there, id)
			<-b.propose(here, id, 0)
			heard(0)
			w.Close()
		}
	})
}

func TestTheNextLeaderInheritsOpenProposals(t *testing.T) {
	withJournals(t, func(b *books) {
		i, _, _ := b.start("a")
		b.leads(i)
		for _, id := range []leadership.ProposalID{"p", "q"} {
			<-b.propose(i, id, 0)
		}
		b.decides(i, "p")
		_, err := i.Do(b.Context(), leadership.Release{LeaseRequest: b.holder()})
		require.NoError(b, err)
		<-b.propose(i, "while-vacant", 0)
		g, err := i.Acquire(b.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: "bob", Inherit: true})
		if err != nil || len(g.Proposals) != 2 || g.Proposals[0].ID != "q" || g.Proposals[1].ID != "while-vacant" {
			b.Errorf("it inherits %+v, %v", g.Proposals, err)
		}
	})
}
