// Package clienttest is a Regent server for the tests of whoever leads by package client: in the test's own process, on a store in memory, and without
// a network.
//
// It is the real service behind the real API: candidates stand in line, tokens rise, leases run out. Its clock is that of the test, so that in a bubble
// of testing/synctest a lease of 30 s runs out at once, and always at the same moment:
//
//	synctest.Test(t, func(t *testing.T) {
//		server := clienttest.New(t)
//		agent := server.Client(client.Candidate{LeaseDuration: 10 * time.Second})
//		err := agent.Run(t.Context(), "reports", func(ctx context.Context, l *client.Lease) error {
//			server.Cut() // what becomes of a leader that cannot renew?
//			<-ctx.Done()
//			return nil
//		})
//		if !errors.Is(err, client.ErrExpired) {
//			t.Errorf("the leader went on: %v", err)
//		}
//	})
package clienttest
