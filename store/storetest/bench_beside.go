package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"regent/leadership"
)

// BenchAppendsBesideRenewals measures how fast one leader appends to its journal, without a pause:
// 1, 10 and 500 entries of 100 bytes at a time. An append comes after the one before, so there is
// one at a time. In each round a renewal and an append of each size are done in turn, and of each
// the median counts: times depend on the machine, and their ratio to that of the renewal less so.
func BenchAppendsBesideRenewals(b *testing.B, h Harness) {
	store := h(b).Open(b)
	service, key := leadership.New(store), leadership.NewKey()
	g, err := service.Acquire(b.Context(), leadership.AcquireRequest{Election: jobs, CandidateID: "ann", Key: &key, LeaseDuration: long})
	if err != nil {
		b.Fatal(err)
	}
	lease := leadership.LeaseRequest{Election: jobs, CandidateID: "ann", Key: key, Token: g.Token}
	ledger := leadership.NewLedger(service, journalOf(b, store))
	if _, err := ledger.OpenJournal(b.Context(), lease); err != nil {
		b.Fatal(err)
	}
	data := json.RawMessage(`"` + strings.Repeat("x", 98) + `"`)
	var at leadership.Index
	sizes := []int{0, 1, 10, leadership.MaxEntries} // 0 stands for a renewal
	took := make([][]time.Duration, len(sizes))
	for b.Loop() {
		for i, n := range sizes {
			begin := time.Now()
			if n == 0 {
				_, err = service.Renew(b.Context(), lease)
			} else {
				var head leadership.JournalHead
				entries := slices.Repeat([]leadership.Entry{{Type: "put", Data: data}}, n)
				head, err = ledger.AppendJournal(b.Context(), leadership.AppendRequest{LeaseRequest: lease, After: at, Entries: entries})
				at = head.Index
			}
			if took[i] = append(took[i], time.Since(begin)); err != nil {
				b.Fatal(err)
			}
		}
	}
	median := func(i int) float64 {
		slices.Sort(took[i])
		return took[i][len(took[i])/2].Seconds()
	}
	renewal := median(0)
	b.ReportMetric(1/renewal, "renewals/s")
	for i, n := range sizes[1:] {
		each := median(i + 1)
		b.ReportMetric(1/each, fmt.Sprintf("appends-of-%d/s", n))
		b.ReportMetric(float64(n)/each, fmt.Sprintf("entries-of-%d/s", n))
		b.ReportMetric(each/renewal, fmt.Sprintf("renewals/append-of-%d", n))
	}
}
