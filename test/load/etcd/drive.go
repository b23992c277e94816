package main

import (
	"cmp"
	"context"
	"os"
	"slices"
	"sync"
	"time"
)

// operation is repeated by one connection. It returns the number of things done: 1, or the size of
// a batch.
type operation func(ctx context.Context) (int, error)

// tally counts the operations of one connection.
type tally struct {
	took  []time.Duration
	count float64
}

// span is the time in which to count.
type span struct{ from, to time.Time }

// part returns the part of the time from begin to end that lies in the span, from 0 to 1.
func (s span) part(begin, end time.Time) float64 {
	from, to := max(begin.Sub(s.from), 0), min(end.Sub(s.from), s.to.Sub(s.from))
	return max(float64(to-from), 0) / float64(max(end.Sub(begin), 1))
}

// run repeats the operation until the span is over, or it fails. An operation counts by the part of
// its time in the span, so that a long one at either end is neither lost nor counted whole. Its
// duration is recorded if it began in the span.
func (t *tally) run(ctx context.Context, s span, do operation) error {
	for begin := time.Now(); begin.Before(s.to) && ctx.Err() == nil; {
		n, err := do(ctx)
		if err != nil {
			return err
		}
		end := time.Now()
		t.count += float64(n) * s.part(begin, end)
		if !begin.Before(s.from) {
			t.took = append(t.took, end.Sub(begin))
		}
		begin = end
	}
	return ctx.Err()
}

// drive runs each operation on its own goroutine: first for warm, which is not counted, then for
// long.
func drive(ctx context.Context, on *server, all []operation, warm, long time.Duration) (Sample, error) {
	begin := time.Now().Add(warm)
	s := span{begin, begin.Add(long)}
	tallies, errs := make([]tally, len(all)), make([]error, len(all))
	var running sync.WaitGroup
	for i, do := range all {
		running.Go(func() { errs[i] = tallies[i].run(ctx, s, do) })
	}
	<-time.After(time.Until(s.from))
	server, err1 := cpu(on.cmd.Process.Pid)
	own, err2 := cpu(os.Getpid())
	<-time.After(time.Until(s.to))
	serverAfter, err3 := cpu(on.cmd.Process.Pid)
	ownAfter, err4 := cpu(os.Getpid())
	running.Wait()
	sample := Sample{Seconds: long.Seconds(), CPU: (serverAfter - server).Seconds(), Load: (ownAfter - own).Seconds()}
	var took []time.Duration
	for _, t := range tallies {
		took = append(took, t.took...)
		sample.Count += t.count
	}
	sample.delays(took)
	return sample, cmp.Or(append(errs, err1, err2, err3, err4)...)
}

// sampleOf returns the sample of operations with these durations, since begin.
func sampleOf(begin time.Time, took []time.Duration) Sample {
	s := Sample{Count: float64(len(took)), Seconds: time.Since(begin).Seconds()}
	s.delays(took)
	return s
}

// delays fills in the durations of operations.
func (s *Sample) delays(took []time.Duration) {
	slices.Sort(took)
	at := func(p float64) float64 { return milliseconds(percentile(took, p)) }
	s.P50, s.P99, s.Max = at(0.5), at(0.99), at(1)
}
