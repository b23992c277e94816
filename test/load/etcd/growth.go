package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/test/load"
)

// Growth is how the cost of Regent grows with how many there are.
type Growth struct {
	Title   string
	About   string
	Columns []string
	Rows    [][]float64
}

const (
	kilo = 1 << 10
	mega = 1 << 20
	// renewers is how many connections renew while elections are counted.
	renewers = 16
	// takeovers is how often a leader changes while candidates are counted.
	takeovers = 10
	idle      = time.Second
)

// grow measures all tables.
func (b *bench) grow(ctx context.Context) ([]Growth, error) {
	elections, err := b.growElections(ctx)
	if err != nil {
		return nil, err
	}
	candidates, err := b.growCandidates(ctx)
	if err != nil {
		return nil, err
	}
	led, err := b.growLed(ctx)
	return []Growth{elections, candidates, led}, err
}

// fresh calls use with a new server, which counts the calls of its store.
func (b *bench) fresh(ctx context.Context, use func(s *regent) error) error {
	dir, remove, err := b.scratch()
	if err != nil {
		return err
	}
	defer remove()
	s, err := startRegent(ctx, b.binary, dir, "--metrics-listen", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer s.stop()
	return use(s)
}

// used is what a server has used, and how often it has called its store.
type used struct {
	usage
	calls float64
}

func usedBy(ctx context.Context, s *regent) (used, error) {
	u, err := s.usage()
	if err != nil {
		return used{}, err
	}
	calls, err := s.metric(ctx, "regent_store_duration_seconds_count")
	return used{u, calls}, err
}

// idleAt returns what the server has used before and after a second in which nothing happens.
func idleAt(ctx context.Context, s *regent) (before, after used, err error) {
	if before, err = usedBy(ctx, s); err != nil {
		return before, after, err
	}
	<-time.After(idle)
	after, err = usedBy(ctx, s)
	return before, after, err
}

func (b *bench) growElections(ctx context.Context) (Growth, error) {
	g := Growth{
		Title: "Held elections",
		About: fmt.Sprintf("%d connections renew them in turn, one `:renew` after the other.", renewers),
		Columns: []string{
			"elections", "renewals/s", "p50, ms", "CPU µs each", "KiB written each", "store calls each",
			"MiB resident", "store calls/s while idle",
		},
	}
	err := b.fresh(ctx, func(s *regent) error {
		for _, n := range b.Growth {
			row, err := b.electionsRow(ctx, s, n)
			if err != nil {
				return err
			}
			g.Rows = append(g.Rows, row)
		}
		return nil
	})
	return g, err
}

func (b *bench) electionsRow(ctx context.Context, s *regent, n int) ([]float64, error) {
	per := shares(n, renewers)
	all, err := operations(ctx, len(per), func(ctx context.Context, i int) (operation, error) { return s.renewing(ctx, i, per[i]) })
	if err != nil {
		return nil, err
	}
	quiet, before, err := idleAt(ctx, s)
	if err != nil {
		return nil, err
	}
	done, err := drive(ctx, s.server, all, 0, b.Long)
	if err == nil && done.Errors > 0 {
		err = errors.New(done.Failure)
	}
	if err != nil {
		return nil, err
	}
	after, err := usedBy(ctx, s)
	return []float64{
		float64(n), Rate.of(done), done.P50, done.CPU / done.Count * 1e6, float64(after.Written-before.Written) / kilo / done.Count,
		(after.calls - before.calls) / done.Count, float64(after.Memory) / mega, (before.calls - quiet.calls) / idle.Seconds(),
	}, err
}

func (b *bench) growCandidates(ctx context.Context) (Growth, error) {
	g := Growth{
		Title: "Candidates that wait for one election",
		About: fmt.Sprintf("Each waits in an `:acquire` over a connection of its own. The leader changes %d times, or as often as there are candidates: "+
			"it releases, and the next releases in its turn.", takeovers),
		Columns: []string{
			"candidates", "takeover p50, ms", "longest, ms", "CPU ms each", "KiB written each", "store calls each",
			"MiB resident", "store calls/s while idle", "CPU ms/s while idle",
		},
	}
	for _, n := range b.Growth {
		err := b.fresh(ctx, func(s *regent) error {
			row, err := candidatesRow(ctx, s, n)
			g.Rows = append(g.Rows, row)
			return err
		})
		if err != nil {
			return g, err
		}
	}
	return g, nil
}

// grown is the election that candidates wait for.
const grown leadership.Election = "grown"

// candidatesRow is nil if this machine does not allow so many connections.
func candidatesRow(ctx context.Context, s *regent, n int) ([]float64, error) {
	if n > files()-reserved {
		return nil, nil
	}
	first, err := s.newAgent("first", longLease)
	if err != nil {
		return nil, err
	}
	lease, err := first.acquire(ctx, grown, longLease, 0)
	if err != nil {
		return nil, err
	}
	crowd, err := load.Start(load.Config{Kind: load.Waiters, Size: n, Servers: []string{s.address}, Election: grown})
	if err != nil {
		return nil, err
	}
	defer crowd.Leave()
	if err := standing(ctx, s, crowd, n); err != nil {
		return nil, err
	}
	before, quiet, err := idleAt(ctx, s)
	if err != nil {
		return nil, err
	}
	turns := min(n, takeovers)
	begin, took := time.Now(), []time.Duration{}
	for range turns {
		sent := boottime.Now()
		if _, err := first.Release(ctx, lease); err != nil {
			return nil, err
		}
		r, err := next(ctx, crowd, func(r load.Report) bool { return r.Grant != nil })
		if err != nil {
			return nil, err
		}
		took = append(took, r.Grant.At-sent)
		key, err := leadership.ParseKey(r.Grant.Key)
		if err != nil {
			return nil, err
		}
		lease = leadership.LeaseRequest{Election: grown, CandidateID: r.Grant.CandidateID, Key: key, Token: r.Grant.Token}
	}
	after, err := usedBy(ctx, s)
	done, per := sampleOf(begin, took), float64(turns)
	return []float64{
		float64(n), done.P50, done.Max, milliseconds(after.CPU-quiet.CPU) / per, float64(after.Written-quiet.Written) / kilo / per,
		(after.calls - quiet.calls) / per, float64(before.Memory) / mega, (quiet.calls - before.calls) / idle.Seconds(), milliseconds(quiet.CPU - before.CPU),
	}, err
}

// standing returns when all candidates have asked, and wait as the server counts them.
func standing(ctx context.Context, s *regent, crowd *load.Crowd, n int) error {
	if _, err := next(ctx, crowd, func(r load.Report) bool { return r.Present }); err != nil {
		return err
	}
	for ctx.Err() == nil {
		waiting, err := s.metric(ctx, "regent_candidates_waiting")
		if err != nil || int(waiting) == n {
			return err
		}
		<-time.After(10 * time.Millisecond)
	}
	return ctx.Err()
}

// next returns the next report that is wanted.
func next(ctx context.Context, crowd *load.Crowd, wanted func(load.Report) bool) (load.Report, error) {
	for {
		select {
		case r, ok := <-crowd.Reports:
			switch {
			case !ok || r.Failure != "":
				return r, fmt.Errorf("the crowd: %s", r.Failure)
			case wanted(r):
				return r, nil
			}
		case <-ctx.Done():
			return load.Report{}, ctx.Err()
		}
	}
}

// reserved is how many files a process needs beside those of connections.
const reserved = 500

// files is how many files a process may have open here.
func files() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return reserved
	}
	return int(min(limit.Max, 1<<20))
}
