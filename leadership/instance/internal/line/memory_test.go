package line_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/instance/internal/line"
	"regent/leadership/service"
	"regent/store/memory"
)

func TestAWaiterTakesLessThanTwoKiB(t *testing.T) {
	const waiters = 10_000
	before := memoryInUse()
	s := service.New(memory.New(memory.Config{}))
	q := line.NewQueue(line.Config{Acquire: s.Acquire, Do: s.Do, Hub: newHub(t, hub.Config{Store: s, Live: true})})
	t.Cleanup(func() { q.Close(context.Background(), errTestOver) })
	_, err := s.Acquire(t.Context(), leadership.AcquireRequest{Election: jobs, CandidateID: "ann", LeaseDuration: time.Hour})
	require.NoError(t, err)
	var calls sync.WaitGroup
	t.Cleanup(calls.Wait)
	for i := range waiters {
		r := keyed(request(leadership.CandidateID(fmt.Sprint("agent-", i))))
		calls.Go(func() { q.Acquire(t.Context(), r) })
	}
	for q.Callers(jobs) < waiters {
		runtime.Gosched()
	}
	each := (memoryInUse() - before) / waiters
	t.Logf("%d bytes for each waiter, the goroutine and the request that a caller brings included, its stack not", each)
	if each > 2<<10 {
		t.Errorf("a waiter takes %d bytes, want 2 KiB at most", each)
	}
	runtime.KeepAlive(q)
}

func memoryInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
