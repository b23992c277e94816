package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"regent/leadership"
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

// grow measures both tables.
func (b *bench) grow(ctx context.Context) ([]Growth, error) {
	elections, err := b.growElections(ctx)
	if err != nil {
		return nil, err
	}
	candidates, err := b.growCandidates(ctx)
	return []Growth{elections, candidates}, err
}

// fresh runs use on a server of its own, which counts the calls to its store.
func (b *bench) fresh(ctx context.Context, use func(s *regent) error) error {
	_, err := b.scratch("growth", func(dir string) ([]Sample, error) {
		s, err := startRegent(ctx, b.binary, dir, "--metrics-listen", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer s.stop()
		return nil, use(s)
	})
	return err
}

func (b *bench) growElections(ctx context.Context) (Growth, error) {
	g := Growth{
		Title: "Elections that are held",
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
	all, err := steps(ctx, len(per), func(ctx context.Context, i int) (step, error) {
		a, err := s.lead(ctx, i, per[i])
		turn := 0
		return func(ctx context.Context) (int, error) {
			turn++
			_, err := a.Renew(ctx, a.leases[turn%len(a.leases)])
			return 1, err
		}, err
	})
	if err != nil {
		return nil, err
	}
	quiet, err := s.storeCalls(ctx)
	if err != nil {
		return nil, err
	}
	<-time.After(idle)
	calls, err := s.storeCalls(ctx)
	if err != nil {
		return nil, err
	}
	before, err := usageOf(s.pid())
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
	after, err := usageOf(s.pid())
	if err != nil {
		return nil, err
	}
	more, err := s.storeCalls(ctx)
	return []float64{
		float64(n), Rate.of(done), done.P50, done.CPU / done.Count * 1e6, float64(after.minus(before).Written) / kilo / done.Count, (more - calls) / done.Count,
		float64(after.Memory) / mega, (calls - quiet) / idle.Seconds(),
	}, err
}

func (b *bench) growCandidates(ctx context.Context) (Growth, error) {
	g := Growth{
		Title: "Candidates that wait for one election",
		About: fmt.Sprintf("Each waits in an `:acquire` over a connection of its own. The leader changes %d times, or as often as there are some: it releases, and "+
			"the next releases in its turn.", takeovers),
		Columns: []string{
			"candidates", "takeover p50, ms", "longest, ms", "CPU ms each", "KiB written each", "store calls each",
			"MiB resident", "store calls/s while idle", "CPU ms/s while idle",
		},
	}
	for _, n := range b.Growth {
		err := b.fresh(ctx, func(s *regent) error {
			row, err := b.candidatesRow(ctx, s, n)
			g.Rows = append(g.Rows, row)
			return err
		})
		if err != nil {
			return g, err
		}
	}
	return g, nil
}

// line is candidates that wait.
type line struct {
	standing atomic.Int64
	won      chan won
	running  sync.WaitGroup
}

type won struct {
	by    *agent
	lease leadership.LeaseRequest
	at    time.Time
	err   error
}

// wait is one that asks until it leads.
func (l *line) wait(ctx context.Context, a *agent) {
	for again := false; ; again = true {
		if !again {
			l.standing.Add(1)
		}
		lease, err := a.acquire(ctx, "grown", aLongTime, leadership.MaxWait)
		if errors.Is(err, leadership.LeaseHeld) {
			continue
		}
		if ctx.Err() == nil {
			l.won <- won{a, lease, time.Now(), err}
		}
		a.wire.CloseIdleConnections()
		return
	}
}

func (b *bench) candidatesRow(ctx context.Context, s *regent, n int) ([]float64, error) {
	if n > files()-reserved {
		return nil, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &line{won: make(chan won, n)}
	defer l.running.Wait()
	defer cancel()
	first, err := s.newAgent("first", aLongTime)
	if err != nil {
		return nil, err
	}
	leader := won{by: first}
	if leader.lease, err = first.acquire(ctx, "grown", aLongTime, 0); err != nil {
		return nil, err
	}
	if err := l.gather(ctx, s, n); err != nil {
		return nil, err
	}
	before, err := s.count(ctx)
	if err != nil {
		return nil, err
	}
	<-time.After(idle)
	quiet, err := s.count(ctx)
	if err != nil {
		return nil, err
	}
	turns := min(n, takeovers)
	begin, took := time.Now(), []time.Duration{}
	for range turns {
		sent := time.Now()
		if _, err := leader.by.Release(ctx, leader.lease); err != nil {
			return nil, err
		}
		select {
		case leader = <-l.won:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if leader.err != nil {
			return nil, leader.err
		}
		took = append(took, leader.at.Sub(sent))
	}
	after, err := s.count(ctx)
	done, per := sampleOf(begin, took), float64(turns)
	return []float64{
		float64(n), done.P50, done.Max, ms(after.CPU-quiet.CPU) / per, float64(after.Written-quiet.Written) / kilo / per, (after.calls - quiet.calls) / per,
		float64(before.Memory) / mega, (quiet.calls - before.calls) / idle.Seconds(), ms(quiet.CPU - before.CPU),
	}, err
}

// gather lets n come, some at a time, and waits until they stand in line as the server counts them.
func (l *line) gather(ctx context.Context, s *regent, n int) error {
	for i := range n {
		a, err := s.newAgent(leadership.CandidateID(fmt.Sprintf("agent-%d", i)), aLongTime)
		if err != nil {
			return err
		}
		l.running.Go(func() { l.wait(ctx, a) })
		for i%setters == 0 && ctx.Err() == nil {
			standing, err := s.metric(ctx, "regent_candidates_waiting")
			if err != nil {
				return err
			}
			if int(standing) >= i-setters {
				break
			}
			<-time.After(time.Millisecond)
		}
	}
	for ctx.Err() == nil {
		standing, err := s.metric(ctx, "regent_candidates_waiting")
		if err != nil || int(standing) == n {
			return err
		}
		<-time.After(10 * time.Millisecond)
	}
	return ctx.Err()
}

// counted is what a server has used, and how often it has called its store.
type counted struct {
	usage
	calls float64
}

func (s *regent) count(ctx context.Context) (counted, error) {
	u, err := usageOf(s.pid())
	if err != nil {
		return counted{}, err
	}
	calls, err := s.storeCalls(ctx)
	return counted{u, calls}, err
}

func (s *regent) storeCalls(ctx context.Context) (float64, error) {
	return s.metric(ctx, "regent_store_duration_seconds_count")
}

// metric is the sum of a metric, over all labels, that the server shows.
func (s *regent) metric(ctx context.Context, name string) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.metrics+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	sum := 0.0
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		metric, value, _ := strings.Cut(lines.Text(), " ")
		if at := strings.IndexByte(metric, '{'); at >= 0 {
			metric, value = metric[:at], lines.Text()[strings.LastIndexByte(lines.Text(), ' ')+1:]
		}
		if metric != name {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// reserved is how many files a process needs beside those of a crowd's connections.
const reserved = 500

// files is how many files a process may have open here.
func files() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return reserved
	}
	return int(min(limit.Max, 1<<20))
}
