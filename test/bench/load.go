package main

import (
	"cmp"
	"context"
	"os"
	"slices"
	"sync"
	"time"
)

// step is one operation of one connection. It returns how many things it did: 1, or the size of a batch.
type step func(ctx context.Context) (int, error)

// tally is what one connection has done.
type tally struct {
	took    []time.Duration
	count   float64
	errors  int
	failure error
}

// span is when to count.
type span struct{ from, to time.Time }

// part is how much of the time from begin to end lies in the span: from 0 to 1.
func (s span) part(begin, end time.Time) float64 {
	from, to := max(begin.Sub(s.from), 0), min(end.Sub(s.from), s.to.Sub(s.from))
	return max(float64(to-from), 0) / float64(max(end.Sub(begin), 1))
}

// run repeats the step until the span is over. An operation counts by the part of its time that lies in the span, so that long ones that straddle an end
// are neither lost nor taken for whole; how long it took is kept if it began there.
func (t *tally) run(ctx context.Context, s span, do step) {
	for begin := time.Now(); begin.Before(s.to) && ctx.Err() == nil; {
		n, err := do(ctx)
		end := time.Now()
		if err != nil {
			t.errors++
			t.failure = err
		} else {
			t.count += float64(n) * s.part(begin, end)
		}
		if !begin.Before(s.from) {
			t.took = append(t.took, end.Sub(begin))
		}
		begin = end
	}
}

// drive lets each step run on its own goroutine: first for warm, which is not counted, then for so long.
func drive(ctx context.Context, on *server, steps []step, warm, long time.Duration) (Sample, error) {
	begin := time.Now().Add(warm)
	s := span{begin, begin.Add(long)}
	tallies := make([]tally, len(steps))
	var running sync.WaitGroup
	for i, do := range steps {
		running.Go(func() { tallies[i].run(ctx, s, do) })
	}
	<-time.After(time.Until(s.from))
	used, err := costs(on)
	<-time.After(time.Until(s.to))
	after, late := costs(on)
	running.Wait()
	sample := sum(tallies)
	sample.Seconds = long.Seconds()
	sample.CPU, sample.Load = (after.server - used.server).Seconds(), (after.load - used.load).Seconds()
	return sample, cmp.Or(err, late, ctx.Err())
}

// cost is the time of processors that both processes have used.
type cost struct{ server, load time.Duration }

func costs(on *server) (cost, error) {
	server, err := usageOf(on.pid())
	if err != nil {
		return cost{}, err
	}
	load, err := usageOf(os.Getpid())
	return cost{server.CPU, load.CPU}, err
}

// sum adds up what the connections have done.
func sum(tallies []tally) Sample {
	var s Sample
	var took []time.Duration
	for _, t := range tallies {
		took = append(took, t.took...)
		s.Count += t.count
		s.Errors += t.errors
		if t.failure != nil && s.Failure == "" {
			s.Failure = t.failure.Error()
		}
	}
	s.delays(took)
	return s
}

// delays fills in how long operations took.
func (s *Sample) delays(took []time.Duration) {
	slices.Sort(took)
	s.P50, s.P99, s.Max = ms(percentile(took, 0.5)), ms(percentile(took, 0.99)), ms(percentile(took, 1))
}
