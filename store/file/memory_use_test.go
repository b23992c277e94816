package file_test

import (
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/store/file"
)

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestAnEventInMemoryCostsLessThan100Bytes with all that is kept of it.
func TestAnEventInMemoryCostsLessThan100Bytes(t *testing.T) {
	const events = 100_000
	path := filepath.Join(t.TempDir(), "leases")
	require.NoError(t, file.Fill(path, 100, events, rand.New(rand.NewPCG(3, 4)).Uint64))
	before := heap()
	s, err := file.Open(path, file.Config{})
	require.NoError(t, err)
	defer s.Close()
	if each := float64(heap()-before) / events; each > 100 {
		t.Errorf("each event costs %.0f bytes", each)
	}
	if n, _, _ := s.Kept(); n != events {
		t.Errorf("there are %d events, want %d", n, events)
	}
}
