package storetest

import (
	"fmt"
	"testing"

	"regent/leadership"
	"regent/leadership/service"
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
	svc := service.New(store)
	ledger := service.NewLedger(svc, journalOf(b, store))
	all := make([]leadership.Entry, entries)
	for i := range all {
		all[i] = leadership.Entry{Type: "put", Data: fmt.Appendf(nil, `{"key":"task-%07d","owner":"agent-%04d","state":"running","attempt":%d,"note":"as before"}`, i, i, i)}
	}
	leases := make([]leadership.LeaseRequest, leaders)
	for i := range leases {
		key := leadership.NewKey()
		g, err := svc.Acquire(b.Context(), leadership.AcquireRequest{Election: leadership.Election(fmt.Sprintf("e%04d", i)), CandidateID: "ann", Key: &key, LeaseDuration: long})
		if err != nil {
			b.Fatal(err)
		}
		leases[i] = leaseIn(g)
	}
	after := make([]leadership.Index, leaders)
	together(b, leaders, func(i, n int, persist func(func() error) error) error {
		err := persist(func() error {
			_, err := ledger.AppendJournal(b.Context(), leadership.AppendRequest{LeaseRequest: leases[i], After: after[i], Entries: all})
			return err
		})
		if after[i] += leadership.Index(entries); err != nil || n%snapshotEvery != 0 {
			return err
		}
		return persist(func() error {
			_, err := ledger.SnapshotJournal(b.Context(), leadership.SnapshotRequest{LeaseRequest: leases[i], UpTo: after[i], Data: []byte(`{"tasks":[]}`)})
			return err
		})
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
	b.ReportMetric(float64(b.N*entries)/b.Elapsed().Seconds(), "entries/s")
}
