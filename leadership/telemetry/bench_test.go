package telemetry_test

import (
	"fmt"
	"testing"

	"regent/leadership"
	"regent/store/memory"
)

// BenchmarkRenew shows what the measured store costs a renewal.
func BenchmarkRenew(b *testing.B) { benchmarkRenew(b, "") }

// BenchmarkReport shows what it costs a renewal with a report.
func BenchmarkReport(b *testing.B) {
	benchmarkRenew(b, `{"calls":50,"custom":{"step":"load"},"errors":4,"health":"ok","progress":412,"tasks":3,"tokensUsed":81000}`)
}

func benchmarkRenew(b *testing.B, report string) {
	for name, wrap := range map[string]func(leadership.Store) leadership.Store{
		"plain":    func(s leadership.Store) leadership.Store { return s },
		"measured": func(s leadership.Store) leadership.Store { return newMetrics(b).Store(s) },
	} {
		b.Run(name, func(b *testing.B) {
			s := leadership.New(wrap(memory.New(memory.Config{})))
			var leases []leadership.LeaseRequest
			for n := range 1000 {
				r := leadership.LeaseRequest{Election: leadership.Election(fmt.Sprint("e-", n)), CandidateID: "ann", Key: leadership.NewKey(), Token: 1, Report: []byte(report)}
				if _, err := s.Acquire(b.Context(), leadership.AcquireRequest{Election: r.Election, CandidateID: "ann", Key: &r.Key, LeaseDuration: leadership.MaxLeaseDuration}); err != nil {
					b.Fatal(err)
				}
				leases = append(leases, r)
			}
			for n := 0; b.Loop(); n++ {
				if _, err := s.Renew(b.Context(), leases[n%len(leases)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
