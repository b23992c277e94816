// Package clienttest is a Regent server for tests of programs that use package client. It runs in
// the test's own process, with a store in memory and without a network.
//
// It is the real service behind the real API: candidates wait in line, tokens rise, leases expire.
// It uses the test's clock, so in a testing/synctest bubble a lease of 30 s expires without
// waiting, and always at the same moment:
//
//	synctest.Test(t, func(t *testing.T) {
//		server := clienttest.New(t)
//		agent := server.Client(client.Candidate{LeaseDuration: 10 * time.Second})
//		lead := func(ctx context.Context, l *client.Lease) error {
//			server.Cut() // the leader can no longer renew
//			<-ctx.Done()
//			return nil
//		}
//		err := agent.Run(t.Context(), "reports", lead)
//		if !errors.Is(err, client.ErrExpired) {
//			t.Errorf("the leader did not stop: %v", err)
//		}
//	})
package clienttest
