package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"regent/test/process"
)

// sample is what one system did in one round.
type sample struct {
	rate     float64 // operations in a second, with fractions
	p50, p99 float64 // of one operation, in milliseconds
	cpu      float64 // of the server for each operation, in microseconds
}

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
func drive(ctx context.Context, on *process.Process, all []operation, warm, long time.Duration) (sample, error) {
	begin := time.Now().Add(warm)
	s := span{begin, begin.Add(long)}
	tallies, errs := make([]tally, len(all)), make([]error, len(all))
	var running sync.WaitGroup
	for i, do := range all {
		running.Go(func() { errs[i] = tallies[i].run(ctx, s, do) })
	}
	<-time.After(time.Until(s.from))
	before, err1 := cpu(on.Process.Pid)
	<-time.After(time.Until(s.to))
	after, err2 := cpu(on.Process.Pid)
	running.Wait()
	var took []time.Duration
	var count float64
	for _, t := range tallies {
		took = append(took, t.took...)
		count += t.count
	}
	x := sampleOf(took)
	x.rate, x.cpu = count/long.Seconds(), (after-before).Seconds()*1e6/count
	return x, cmp.Or(append(errs, err1, err2)...)
}

// sampleOf returns the sample of operations with these durations: of each percentile the smallest
// that at least so many do not exceed (the nearest rank).
func sampleOf(took []time.Duration) (s sample) {
	if len(took) == 0 {
		return s
	}
	slices.Sort(took)
	at := func(p float64) float64 {
		return float64(took[int(math.Ceil(p*float64(len(took))))-1]) / float64(time.Millisecond)
	}
	return sample{p50: at(0.5), p99: at(0.99)}
}

// cpu returns the processor time, user and system, that a process has used so far. It is read from
// /proc/PID/stat; see proc_pid_stat(5).
func cpu(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	name := strings.LastIndex(string(stat), ") ") // the program's name, before it, may contain anything
	fields := strings.Fields(string(stat[name+1:]))
	const utime, stime = 14 - 3, 15 - 3 // the first field after the name is the third
	user, err1 := strconv.Atoi(fields[utime])
	system, err2 := strconv.Atoi(fields[stime])
	const tick = 10 * time.Millisecond // the same on every Linux that Go supports
	return time.Duration(user+system) * tick, errors.Join(err1, err2)
}
