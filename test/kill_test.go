package test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"regent/leadership"
	"regent/test/machine"
)

const (
	killers   = 4 // clients that acquire and release all the time
	contested = 6 // elections that they contend for
)

// A server on a local store is killed again and again while clients acquire and release. After each
// start every acknowledged change must be there: no grant lost, no release undone, no token granted
// twice.
func TestNothingAcknowledgedIsLostWhenTheServerIsKilled(t *testing.T) {
	machine.Share(t)
	n := machine.Size(40, 500)
	in := inFile(t)
	book := &ledger{granted: make(map[grantID]leadership.CandidateID), released: make(map[leadership.Election]leadership.Token)}
	clients := make([]*churner, killers)
	for i := range clients {
		clients[i] = &churner{id: candidate(i), key: leadership.NewKey(), book: book, rand: rand.New(rand.NewPCG(uint64(i), 7))}
	}
	random := rand.New(rand.NewPCG(1, 7))
	for kill := range n {
		s := in.serve(t)
		book.check(t, s)
		if t.Failed() {
			t.Fatalf("after %d kills; the server says:\n%s", kill, s.log)
		}
		churn(t, s, clients, random.IntN(8), time.Duration(random.IntN(5))*time.Millisecond)
	}
	s := in.serve(t)
	book.check(t, s)
	for i := range contested {
		book.compare(t, verifyHistory(t.Context(), t, s, electionName(i)))
	}
	t.Logf("%d kills, %d grants acknowledged, newest tokens released %v", n, len(book.granted), book.released)
	if len(book.granted) < n/2 {
		t.Errorf("only %d grants were acknowledged in %d lives of the server: too few to say anything", len(book.granted), n)
	}
}

// churn lets all clients work until so many more grants were acknowledged, and a moment longer,
// kills the server under them, and waits for them.
func churn(t *testing.T, s *server, clients []*churner, grants int, longer time.Duration) {
	t.Helper()
	book := clients[0].book
	before := book.grants()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() { c.work(ctx, t, s) })
	}
	for end := time.Now().Add(patience); book.grants() < before+grants && time.Now().Before(end); {
		<-time.After(time.Millisecond)
	}
	<-time.After(longer)
	s.kill()
	cancel()
	wg.Wait()
}

type grantID struct {
	election leadership.Election
	token    leadership.Token
}

// ledger has the answers that the clients got.
type ledger struct {
	mu       sync.Mutex
	granted  map[grantID]leadership.CandidateID
	released map[leadership.Election]leadership.Token // the newest token whose release was acknowledged
}

func (b *ledger) grants() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.granted)
}

func (b *ledger) grant(t *testing.T, e leadership.Election, token leadership.Token, who leadership.CandidateID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if other, ok := b.granted[grantID{e, token}]; ok && other != who {
		t.Errorf("%s: token %d was granted to %s and to %s", e, token, other, who)
	}
	if token <= b.released[e] {
		t.Errorf("%s: token %d was granted to %s after the release of %d", e, token, who, b.released[e])
	}
	b.granted[grantID{e, token}] = who
}

func (b *ledger) release(e leadership.Election, token leadership.Token) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.released[e] = max(b.released[e], token)
}

// check compares the server's state after its start with the changes acknowledged before.
func (b *ledger) check(t *testing.T, s *server) {
	t.Helper()
	newest := make(map[leadership.Election]leadership.Token)
	for id := range b.granted {
		newest[id.election] = max(newest[id.election], id.token)
	}
	for e, token := range newest {
		l, err := s.client.Get(t.Context(), e)
		switch {
		case err != nil:
			t.Errorf("%s: %v", e, err)
		case l.Token < token:
			t.Errorf("%s: the token is %d, and %d was acknowledged", e, l.Token, token)
		case l.State == leadership.Held && l.Token <= b.released[e]:
			t.Errorf("%s: %s leads with token %d, whose release was acknowledged", e, l.LeaderID, l.Token)
		}
	}
}

// compare looks for every acknowledged grant in the history.
func (b *ledger) compare(t *testing.T, events []leadership.Event) {
	t.Helper()
	for _, e := range events {
		if who, ok := b.granted[grantID{e.Election, e.Token}]; ok && e.Type == leadership.EventAcquired && e.LeaderID != who {
			t.Errorf("%s: token %d went to %s, and %s was told that it leads", e.Election, e.Token, e.LeaderID, who)
		}
	}
	last := events[len(events)-1].Token
	for id := range b.granted {
		if id.election == events[0].Election && id.token > last {
			t.Errorf("%s: token %d was acknowledged, and the history ends at %d", id.election, id.token, last)
		}
	}
}

// churner is a client that acquires and releases.
type churner struct {
	id   leadership.CandidateID
	key  leadership.Key
	book *ledger
	rand *rand.Rand
}

// work runs until the server has died.
func (c *churner) work(ctx context.Context, t *testing.T, s *server) {
	for ctx.Err() == nil {
		e := electionName(c.rand.IntN(contested))
		g, err := s.client.Acquire(ctx, leadership.AcquireRequest{Election: e, CandidateID: c.id, Key: &c.key, LeaseDuration: time.Minute})
		if gone(err) {
			return
		}
		if errors.Is(err, leadership.LeaseHeld) {
			continue
		}
		if err != nil {
			t.Errorf("%s asks for %s: %v", c.id, e, err)
			return
		}
		c.book.grant(t, e, g.Token, c.id)
		_, err = s.client.Release(ctx, leadership.LeaseRequest{Election: e, CandidateID: c.id, Key: c.key, Token: g.Token})
		if gone(err) {
			return
		}
		if err != nil {
			t.Errorf("%s releases %s: %v", c.id, e, err)
			return
		}
		c.book.release(e, g.Token)
	}
}

// gone reports whether the error says that the server did not answer.
func gone(err error) bool {
	return errors.Is(err, leadership.StoreUnavailable) || errors.Is(err, leadership.OutcomeUnknown) || errors.Is(err, context.Canceled)
}
