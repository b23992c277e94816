package test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/test/machine"
)

// Two processes on one store (one where a store takes no more), many candidates, several elections:
// in every round each election has one winner, every other candidate hears LEASE_HELD and nothing
// else, and the tokens of an election rise by one from round to round.
func TestManyCandidatesAtTwoServersElectOneLeaderEach(t *testing.T) {
	machine.Share(t)
	for name, in := range map[string]func(testing.TB) place{"file": inFile, "firestore": inFirestore, "spanner": inSpanner} {
		t.Run(name, func(t *testing.T) {
			machine.Share(t)
			in := in(t)
			servers := []*server{in.serve(t)}
			if name != "file" {
				servers = append(servers, in.serve(t))
			}
			contend(t, machine.Size(2, 3), machine.Size(16, 32), machine.Size(5, 20), servers...)
		})
	}
}

func contend(t *testing.T, rounds, contenders, elections int, servers ...*server) {
	ctx := within(t, 5*time.Minute)
	keys := make([]leadership.Key, contenders)
	for i := range keys {
		keys[i] = leadership.NewKey()
	}
	for round := range rounds {
		winners := campaign(ctx, t, servers, keys, elections)
		for e, who := range winners {
			if len(who) != 1 {
				t.Fatalf("round %d, %s: %d winners: %+v", round, e, len(who), who)
			}
			if who[0].token != leadership.Token(round+1) {
				t.Errorf("round %d, %s: token %d, want %d", round, e, who[0].token, round+1)
			}
			stepDown(ctx, t, servers, e, who[0], keys)
		}
		if len(winners) != elections {
			t.Errorf("round %d: %d elections have a winner, want %d", round, len(winners), elections)
		}
	}
	for i := range elections {
		verifyHistory(ctx, t, servers[0], electionName(i))
	}
}

type winner struct {
	contender int
	token     leadership.Token
}

func electionName(i int) leadership.Election {
	return leadership.Election(fmt.Sprintf("shard-%02d", i))
}

func candidate(i int) leadership.CandidateID {
	return leadership.CandidateID(fmt.Sprintf("agent-%02d", i))
}

// campaign lets every candidate ask once for each election, each candidate beginning at another
// one.
func campaign(ctx context.Context, t *testing.T, servers []*server, keys []leadership.Key, elections int) map[leadership.Election][]winner {
	t.Helper()
	var mu sync.Mutex
	winners := make(map[leadership.Election][]winner)
	var wg sync.WaitGroup
	for who := range keys {
		wg.Go(func() {
			api := servers[who%len(servers)].client
			for i := range elections {
				e := electionName((i + who) % elections)
				g, err := api.Acquire(ctx, leadership.AcquireRequest{Election: e, CandidateID: candidate(who), Key: &keys[who], LeaseDuration: time.Hour})
				switch {
				case err == nil:
					mu.Lock()
					winners[e] = append(winners[e], winner{who, g.Token})
					mu.Unlock()
				case !errors.Is(err, leadership.LeaseHeld):
					t.Errorf("%s asks for %s: %v", candidate(who), e, err)
				}
			}
		})
	}
	wg.Wait()
	return winners
}

func stepDown(ctx context.Context, t *testing.T, servers []*server, e leadership.Election, w winner, keys []leadership.Key) {
	t.Helper()
	for _, s := range servers { // once at each server: twice is the same as once
		_, err := s.client.Do(ctx, leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: e, CandidateID: candidate(w.contender), Key: keys[w.contender], Token: w.token}})
		if err != nil {
			t.Fatalf("%s releases %s: %v", candidate(w.contender), e, err)
		}
	}
}

// verifyHistory expects a gapless history in which every grant has the next token.
func verifyHistory(ctx context.Context, t testing.TB, s *server, e leadership.Election) []leadership.Event {
	t.Helper()
	var events []leadership.Event
	for {
		page, err := s.client.Events(ctx, leadership.EventsRequest{Election: e, After: leadership.Revision(len(events)), Limit: leadership.MaxPageSize})
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		events = append(events, page...)
	}
	var token leadership.Token
	for i, event := range events {
		if event.Revision != leadership.Revision(i+1) {
			t.Fatalf("%s: event %d has revision %d", e, i+1, event.Revision)
		}
		if event.Type == leadership.EventAcquired {
			token++
		}
		if event.Token != token {
			t.Fatalf("%s: event %d has token %d, want %d", e, i+1, event.Token, token)
		}
	}
	return events
}
