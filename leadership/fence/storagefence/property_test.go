package storagefence_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
	"regent/leadership/fence/storagefence"
)

// randomFaults returns faults for one in five requests.
func randomFaults(r *rand.Rand) func(request) fault {
	var mu sync.Mutex // guards r
	return func(request) fault {
		mu.Lock()
		defer mu.Unlock()
		switch r.IntN(30) {
		case 0:
			return fault{lost: true}
		case 1:
			return fault{lostBack: true}
		case 2:
			return fault{cutBack: true}
		case 3:
			return reply(503)
		case 4:
			return reply(429)
		case 5:
			return fault{late: time.Duration(r.IntN(20_000)) * time.Millisecond}
		}
		return fault{}
	}
}

// writeAttempt is a write of a leader, and how it ended. Its content is unique.
type writeAttempt struct {
	content string
	err     error
}

// lead makes some writes with one token, and returns how they ended.
func lead(t *testing.T, r *rand.Rand, b *storagefence.Bucket, token leadership.Token, name string) (attempts []writeAttempt) {
	time.Sleep(time.Duration(token) * time.Second) // so that most come in the order of their tokens
	for i := range 4 {
		time.Sleep(time.Duration(r.IntN(5000)) * time.Millisecond)
		d := writeAttempt{content: fmt.Sprintf("%s.%d", name, i)}
		switch r.IntN(5) {
		case 0:
			_ = b.Delete(t.Context(), "state", planner(token))
			continue
		case 1, 2:
			o, err := b.Read(t.Context(), "state")
			if err != nil {
				continue
			}
			time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
			_, d.err = b.Replace(t.Context(), "state", o.Generation, planner(token), []byte(d.content))
		default:
			d.err = b.Write(t.Context(), "state", planner(token), []byte(d.content))
		}
		attempts = append(attempts, d)
	}
	return attempts
}

func TestHighestTokenOfManyLeadersWins(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.faults = randomFaults(rand.New(rand.NewPCG(seed, 0)))
			b := f.bucket(t, storagefence.Config{Attempts: 5})
			attempts := make([][]writeAttempt, 10)
			var wg sync.WaitGroup
			for i := range attempts {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(seed, uint64(i+1)))
					attempts[i] = lead(t, r, b, leadership.Token(1+r.IntN(12)), strconv.Itoa(i))
				})
			}
			wg.Wait()
			time.Sleep(time.Hour) // for late requests
			f.judge(t, attempts)
		})
	}
}

// judge compares what was written with what the writers were told.
func (f *fake) judge(t *testing.T, attempts [][]writeAttempt) {
	t.Helper()
	times, ids := map[string]int{}, map[string]int{} // how often each upload succeeded
	highest := 0
	for _, o := range f.landed {
		token, err := strconv.Atoi(o.version.Metadata["regent-fencing-token"])
		if err != nil || token < highest {
			t.Errorf("generation %d is by token %d (%v), after one by %d", o.version.Generation, token, err, highest)
		}
		highest = max(highest, token)
		times[o.content]++
		if ids[o.version.Metadata["regent-write-id"]]++; ids[o.version.Metadata["regent-write-id"]] > 1 {
			t.Errorf("generation %d: one write was made twice", o.version.Generation)
		}
	}
	for _, all := range attempts {
		for _, d := range all {
			n := times[d.content]
			known := d.err == nil || !errors.Is(d.err, leadership.OutcomeUnknown)
			if known && (n == 1) != (d.err == nil) {
				t.Errorf("%s was written %d times, and its leader was told: %v", d.content, n, d.err)
			}
		}
	}
	if n := len(f.landed); n > 0 && f.objects["state"].content != f.landed[n-1].content {
		t.Errorf("the content is not that of the last write")
	}
}
