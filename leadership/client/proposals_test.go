package client_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
)

func asks(id leadership.ProposalID, wait time.Duration) leadership.ProposeRequest {
	return leadership.ProposeRequest{Election: "reports", ID: id, Kind: "scale", TTL: time.Hour, Wait: wait}
}

// A proposer waits for longer than one call does, and over failures; the leader hears of it.
func TestAProposalIsAwaitedUntilTheLeaderThatHearsOfItDecides(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		heard := &noticeLog{}
		config := server.Config()
		config.Candidate, config.OnNotice = named("ann"), heard.add
		config.Candidate.HearProposals = true
		l := lead(t, newClient(t, config))
		time.Sleep(time.Second)
		var calls atomic.Int32
		member := over(t, server, named("dora"), func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, ":propose") && calls.Add(1) == 2 {
				return nil, errLostReply
			}
			return send()
		})
		answer := make(chan leadership.Proposal, 1)
		go func() {
			p, err := member.Propose(t.Context(), asks("p", 5*time.Minute))
			assert.NoError(t, err)
			answer <- p
		}()
		time.Sleep(time.Second)
		if got := kinds(heard.take()); !slices.Equal(got, []client.NoticeKind{client.NoticeAsked}) {
			t.Errorf("the leader has the notices %q", got)
		}
		time.Sleep(150 * time.Second)
		p, err := l.Decide(t.Context(), "p", leadership.ProposalRejected, "too late")
		if err != nil || p.Decision == nil {
			t.Fatalf("decided: %+v, %v", p, err)
		}
		if p := <-answer; p.CandidateID != "dora" || p.Decision == nil || p.Decision.Verdict != leadership.ProposalRejected || p.Decision.Note != "too late" || calls.Load() < 4 {
			t.Errorf("after %d calls the proposer has %+v", calls.Load(), p)
		}
		if _, err := l.Decide(t.Context(), "p", leadership.ProposalAccepted, ""); !errors.Is(err, leadership.InvalidArgument) || !l.Valid() {
			t.Errorf("decided otherwise: %v", err)
		}
		l.Resign(t.Context())
		_, err = l.Decide(t.Context(), "p", leadership.ProposalRejected, "too late")
		assert.ErrorIs(t, err, client.ErrResigned, "decided after its end")
	})
}

func TestAnOpenProposalIsInheritedAndNotAwaitedBeyondItsTTL(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		who := named("ann")
		who.Inherit = true
		lead(t, server.Client(who)).Resign(t.Context())
		member := over(t, server, named("dora"), func(_ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			time.Sleep(123456 * time.Nanosecond) // so that what is left of a wait is not in whole milliseconds
			return send()
		})
		began := time.Now()
		if p, err := member.Propose(t.Context(), asks("p", 90*time.Second)); err != nil || p.Decision != nil || time.Since(began).Round(time.Millisecond) != 90*time.Second {
			t.Errorf("after %v there is %+v, %v", time.Since(began), p, err)
		}
		_, err := member.Propose(t.Context(), asks("q", 2*time.Hour))
		assert.ErrorIs(t, err, leadership.InvalidArgument, "a wait beyond the ttl")
		who.ID = "bob"
		l := lead(t, server.Client(who))
		defer l.Resign(t.Context())
		if all := l.OpenProposals(); len(all) != 1 || all[0].ID != "p" {
			t.Errorf("the next leader has %+v", all)
		}
		if all, err := member.Proposals(t.Context(), "reports"); err != nil || len(all.Open) != 1 || all.Open[0].CandidateID != "dora" {
			t.Errorf("there is %+v, %v", all, err)
		}
	})
}
