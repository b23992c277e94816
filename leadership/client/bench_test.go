package client_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
	"regent/leadership/wire"
)

// BenchmarkHeldLeases reports how many calls the renewal of a lease takes, on average, in a process
// that leads so many elections. An operation is one call; the leases are as short as can be.
func BenchmarkHeldLeases(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("leases=%d", n), func(b *testing.B) { benchmarkHeldLeases(b, n) })
	}
}

func benchmarkHeldLeases(b *testing.B, n int) {
	server := clienttest.New(b)
	calls := make(chan int, 1<<10) // how many leases each renewed
	config := server.Config()
	config.Candidate = client.Candidate{LeaseDuration: leadership.MinLeaseDuration}
	config.HTTP = through(config.HTTP, func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		response, err := send()
		switch {
		case err != nil:
		case strings.HasSuffix(r.URL.Path, wire.PathBatchRenew):
			calls <- strings.Count(string(rewind(response)), `"lease":{`)
		case strings.HasSuffix(r.URL.Path, wire.Renew):
			calls <- 1
		}
		return response, err
	})
	c, err := client.New(config)
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		l, err := c.TryAcquire(b.Context(), leadership.Election(fmt.Sprint("shard-", i)))
		if err != nil {
			b.Fatal(err)
		}
		defer l.Resign(b.Context())
	}
	for settled := time.After(2 * time.Second); settled != nil; { // until all go together
		select {
		case <-calls:
		case <-settled:
			settled = nil
		}
	}
	renewals := 0
	for b.Loop() {
		renewals += <-calls
	}
	b.ReportMetric(float64(b.N)/float64(renewals), "calls/renewal")
}
