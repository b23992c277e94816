package file_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/service"
	"regent/store/file"
)

// BenchmarkFileJournal measures appends of 1, 10 and 500 entries of about 100 bytes each, by one
// leader and by 64 at a time, each on a journal of its own with a snapshot every 50 appends. An
// operation is one append. A commit is one write and one sync.
func BenchmarkFileJournal(b *testing.B) {
	for _, leaders := range []int{1, 64} {
		for _, entries := range []int{1, 10, leadership.MaxEntries} {
			b.Run(fmt.Sprintf("append/leaders=%d/entries=%d", leaders, entries), func(b *testing.B) { benchJournal(b, leaders, entries) })
		}
	}
}

func benchJournal(b *testing.B, leaders, entries int) {
	s, err := file.Open(filepath.Join(b.TempDir(), "leases"), file.Config{})
	require.NoError(b, err)
	defer s.Close()
	svc := service.New(s)
	ledger := service.NewLedger(svc, s)
	all := make([]leadership.Entry, entries)
	for i := range all {
		all[i] = leadership.Entry{Type: "put", Data: fmt.Appendf(nil, `{"key":"task-%07d","owner":"agent-%04d","state":"running","attempt":%d,"note":"as before"}`, i, i, i)}
	}
	leases := make([]leadership.LeaseRequest, leaders)
	for i := range leases {
		key := leadership.NewKey()
		e := leadership.Election(fmt.Sprintf("e%04d", i))
		g, err := svc.Acquire(b.Context(), leadership.AcquireRequest{Election: e, CandidateID: "ann", Key: &key, LeaseDuration: time.Hour})
		require.NoError(b, err)
		leases[i] = leadership.LeaseRequest{Election: e, CandidateID: "ann", Key: key, Token: g.Token}
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	before := s.Sequence()
	b.ResetTimer()
	var running sync.WaitGroup
	for _, lease := range leases {
		running.Go(func() {
			after := leadership.Index(0)
			for n := 1; left.Add(-1) >= 0; n++ {
				_, err := ledger.AppendJournal(b.Context(), leadership.AppendRequest{LeaseRequest: lease, After: after, Entries: all})
				if after += leadership.Index(entries); err == nil && n%50 == 0 {
					_, err = ledger.SnapshotJournal(b.Context(), leadership.SnapshotRequest{LeaseRequest: lease, UpTo: after, Data: []byte(`{"tasks":[]}`)})
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	b.ReportMetric(float64(s.Sequence()-before)/float64(b.N), "commits/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
	b.ReportMetric(float64(b.N*entries)/b.Elapsed().Seconds(), "entries/s")
}
