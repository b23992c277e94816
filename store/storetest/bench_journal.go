package storetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"regent/leadership"
)

// snapshotEvery is after how many appends BenchJournal puts a snapshot, as a leader does that goes
// on appending.
const snapshotEvery = 50

// BenchJournal measures a Ledger on the store: appends of 1, 10 and 500 entries of about 100 bytes
// each, by one leader and by so many at a time, each on a journal of its own with a snapshot every
// 50 appends. An operation is one append.
func BenchJournal(b *testing.B, h Harness, leaders ...int) {
	if len(leaders) == 0 {
		leaders = []int{1, 64}
	}
	for _, n := range leaders {
		for _, entries := range []int{1, 10, leadership.MaxEntries} {
			b.Run(fmt.Sprintf("append/leaders=%d/entries=%d", n, entries), func(b *testing.B) { benchJournal(b, h, n, entries) })
		}
	}
}

func benchJournal(b *testing.B, h Harness, leaders, entries int) {
	store := h(b).Open(b)
	service := leadership.New(store)
	ledger := leadership.NewLedger(service, journalOf(b, store))
	all := make([]leadership.Entry, entries)
	for i := range all {
		all[i] = leadership.Entry{Type: "put", Data: fmt.Appendf(nil, `{"key":"task-%07d","owner":"agent-%04d","state":"running","attempt":%d,"note":"as before"}`, i, i, i)}
	}
	leases := make([]leadership.LeaseRequest, leaders)
	for i := range leases {
		key := leadership.NewKey()
		g, err := service.Acquire(b.Context(), leadership.AcquireRequest{Election: leadership.Election(fmt.Sprintf("e%04d", i)), CandidateID: "ann", Key: &key, LeaseDuration: long})
		if err != nil {
			b.Fatal(err)
		}
		leases[i] = leaseIn(g)
	}
	var left, refused atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ResetTimer()
	for _, lease := range leases {
		wg.Go(func() {
			for after, n := leadership.Index(0), 1; left.Add(-1) >= 0; n++ {
				err := persist(&refused, func() error {
					_, err := ledger.AppendJournal(b.Context(), leadership.AppendRequest{LeaseRequest: lease, After: after, Entries: all})
					return err
				})
				after += leadership.Index(entries)
				if err == nil && n%snapshotEvery == 0 {
					err = persist(&refused, func() error { return snap(b.Context(), ledger, lease, after) })
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
	b.ReportMetric(float64(b.N*entries)/b.Elapsed().Seconds(), "entries/s")
	b.ReportMetric(float64(refused.Load())/float64(b.N), "refused/op")
}

func snap(ctx context.Context, l *leadership.Ledger, lease leadership.LeaseRequest, upTo leadership.Index) error {
	_, err := l.SnapshotJournal(ctx, leadership.SnapshotRequest{LeaseRequest: lease, UpTo: upTo, Data: []byte(`{"tasks":[]}`)})
	return err
}

// persist makes a call again as often as the store was too busy for it, and counts that.
func persist(refused *atomic.Int64, call func() error) error {
	err := call()
	for ; again(err); err = call() {
		refused.Add(1)
	}
	return err
}
