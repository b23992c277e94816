package clienttest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership/client"
	"regent/leadership/client/clienttest"
)

func TestLeaderThatIsCutOffStopsBeforeItsLeaseEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := clienttest.New(t)
		agent := server.Client(client.Candidate{ID: "ann", LeaseDuration: 10 * time.Second})
		var cut time.Time
		err := agent.Run(t.Context(), "reports", func(ctx context.Context, l *client.Lease) error {
			time.Sleep(time.Minute) // it is renewed
			server.Cut()
			cut = time.Now()
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if !errors.Is(err, client.ErrExpired) {
			t.Errorf("the leader was told %v, want %v", err, client.ErrExpired)
		}
		if d := time.Since(cut); d > 10*time.Second+10*time.Second {
			t.Errorf("it stopped after %v", d)
		}
	})
}

func TestNextInLineLeadsAsSoonAsTheLeaderIsDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := clienttest.New(t)
		first, err := server.Client(client.Candidate{ID: "ann"}).Campaign(t.Context(), "reports")
		if err != nil {
			t.Fatal(err)
		}
		next := make(chan *client.Lease, 1)
		go func() {
			l, err := server.Client(client.Candidate{ID: "bob"}).Campaign(t.Context(), "reports")
			if err != nil {
				t.Error(err)
			}
			next <- l
		}()
		time.Sleep(3 * time.Minute)
		if len(next) > 0 || !first.Valid() {
			t.Fatal("a second candidate leads while the first does")
		}
		began := time.Now()
		if err := first.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := <-next
		if second.Token() != first.Token()+1 || first.Valid() || !second.Valid() {
			t.Errorf("token %d follows on %d", second.Token(), first.Token())
		}
		t.Logf("after %v", time.Since(began))
		if err := second.Resign(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
