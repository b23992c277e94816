package file_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"testing"

	"regent/store/file"
)

// filled is a folder with so many elections and events.
func filled(t testing.TB, elections, events int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leases")
	if err := file.Fill(path, elections, events, rand.New(rand.NewPCG(3, 4)).Uint64); err != nil {
		t.Fatal(err)
	}
	return path
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkOpen(b *testing.B) {
	for _, events := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("elections=10000/events=%d", events), func(b *testing.B) {
			path := filled(b, 10_000, events)
			before := heap()
			b.ResetTimer()
			for range b.N {
				s, err := file.Open(path, file.Config{})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				b.ReportMetric(float64(heap()-before)/float64(events), "heapB/event")
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// TestAnEventInMemoryCostsLessThan100Bytes with all that is kept of it.
func TestAnEventInMemoryCostsLessThan100Bytes(t *testing.T) {
	const events = 100_000
	path := filled(t, 100, events)
	before := heap()
	s, err := file.Open(path, file.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if each := float64(heap()-before) / events; each > 100 {
		t.Errorf("each event costs %.0f bytes", each)
	}
	if n, _, _ := s.Kept(); n != events {
		t.Errorf("there are %d events, want %d", n, events)
	}
}
