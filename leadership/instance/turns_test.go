package instance_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// ticketing gives a ticket with each renewal, and keeps what each has brought.
type ticketing struct {
	service.Store
	brought []leadership.Ticket
	given   int
}

func (s *ticketing) Renew(ctx context.Context, leases []rule.Renewal) []rule.Renewed {
	answers := s.Store.Renew(ctx, leases)
	for i := range answers {
		s.brought = append(s.brought, leases[i].Ticket)
		s.given++
		answers[i].Ticket = leadership.Ticket(fmt.Sprint("t", s.given))
	}
	return answers
}

func TestATicketPassesThroughAnInstanceToTheLeaderAlone(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		store := &ticketing{Store: c.store}
		on := instance.Guard(c.start("c", store))
		g, err := on.Acquire(t.Context(), c.ask("ann", 0))
		require.NoError(t, err)
		lease := leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Key: g.Key, Token: g.Token, Ticket: "t0"}
		for i := range 4 {
			time.Sleep(time.Second) // so that the cache takes the renewal for newer
			var l leadership.Lease
			if i%2 == 0 {
				l, err = on.Renew(t.Context(), lease)
			} else {
				var results []leadership.Result
				if results, err = on.BatchRenew(t.Context(), []leadership.LeaseRequest{lease}); err != nil {
					t.Fatal(err)
				}
				l, err = results[0].Lease, results[0].Err
			}
			if want := leadership.Ticket(fmt.Sprint("t", i+1)); err != nil || l.Ticket != want || store.brought[i] != lease.Ticket {
				t.Errorf("sent %q, arrived %q, answered %q, %v; want %q", lease.Ticket, store.brought[i], l.Ticket, err, want)
			}
			lease.Ticket = l.Ticket
			for _, strong := range []bool{false, true} {
				if r, err := on.Read(t.Context(), leadership.ReadRequest{Election: "jobs", Strong: strong}); err != nil || r.Ticket != "" {
					t.Errorf("a reader is shown the ticket %q, %v", r.Ticket, err)
				}
			}
		}
		if _, err := on.Renew(t.Context(), leadership.LeaseRequest{
			Election: "jobs", CandidateID: "ann", Key: g.Key, Token: g.Token, Ticket: leadership.Ticket(make([]byte, leadership.MaxTicketBytes+1)),
		}); err == nil || len(store.brought) != 4 {
			t.Errorf("a ticket of more than 1 KiB reaches the store, or is taken: %v", err)
		}
	})
}
