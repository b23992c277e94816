package main

import (
	"bufio"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"regent/leadership"
	"regent/test/load"
	"regent/test/load/etcd/internal/contender"
	"regent/test/proxy"
)

// spindleName is the system that contests on Spanner are with.
const spindleName = "spindle"

// emulatorVariable is where clients of Spanner look for an emulator.
const emulatorVariable = "SPANNER_EMULATOR_HOST"

// side is one of the two systems: it makes a site on the emulator at host:port.
type side func(ctx context.Context, host string) (site, error)

// site is a database of its own, with what has to serve there.
type site struct {
	// compete starts a process that competes for a lock. With ask it finds out soon that it leads;
	// else it waits until it is told.
	compete func(ctx context.Context, id, lock string, lease time.Duration, ask bool) (*contender.Process, error)
	close   func()
}

// spanner is the bench with spindle.
type spanner struct {
	*bench
	host    string     // of the emulator
	spindle string     // the program
	made    int        // databases
	mu      sync.Mutex // guards made
}

// besideSpindle runs the contests with spindle that are picked, on an emulator of their own if none runs.
func (b *bench) besideSpindle(ctx context.Context, picked func(id string) bool) (all []Contest, versions []Version, err error) {
	if !picked(killedID) && !picked(releasedID) && !picked(callsID) {
		return nil, nil, nil
	}
	s := &spanner{bench: b, host: b.emulator}
	if s.host == "" {
		host, stop, err := startEmulator(ctx, b.dir)
		if err != nil {
			return nil, nil, err
		}
		defer stop()
		s.host = host
	}
	if s.spindle, err = build(ctx, ".", "./spindle", b.dir); err != nil {
		return nil, nil, err
	}
	for _, c := range []struct {
		id  string
		run func(context.Context) (Contest, error)
	}{{killedID, s.killed}, {releasedID, s.released}, {callsID, s.calls}} {
		if !picked(c.id) {
			continue
		}
		contest, err := c.run(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", c.id, err)
		}
		all = append(all, contest)
	}
	info, err := buildinfo.ReadFile(s.spindle)
	if err != nil {
		return nil, nil, err
	}
	return all, versionsOf(info.Deps, "github.com/flowerinthenight/spindle/v2", "cloud.google.com/go/spanner"), nil
}

// startEmulator returns the host:port of a Spanner emulator. If the environment names one, that one
// is used.
func startEmulator(ctx context.Context, dir string) (host string, stop func(), err error) {
	root, err := rootFolder(ctx)
	if err != nil {
		return "", nil, err
	}
	program, err := build(ctx, root, "./cmd/emulators", dir)
	if err != nil {
		return "", nil, err
	}
	// The emulator ends with the shell's input, so also if this process is killed.
	cmd := exec.Command(program, "-only", "spanner", "--", "sh", "-c", "echo $"+emulatorVariable+"; cat")
	var told strings.Builder // to be read when the program has ended
	cmd.Env, cmd.Stderr = append(os.Environ(), "REGENT_REQUIRE_EMULATORS=1"), &told
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		stdin.Close()
		io.Copy(io.Discard, stdout)
		cmd.Wait()
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("the Spanner emulator did not start: %s", told.String())
	}
	return strings.TrimSpace(line), stop, nil
}

// database returns the name of a database that does not exist yet.
func (s *spanner) database() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	return fmt.Sprintf("projects/compare/instances/instance-%d/databases/leaders", s.made)
}

// tool runs a program to its end.
func tool(ctx context.Context, host, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(environ(), emulatorVariable+"="+host)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, text)
	}
	return nil
}

// contend starts a process that competes.
func contend(host string, cmd *exec.Cmd, env ...string) (*contender.Process, error) {
	cmd.Env = append(append(environ(), emulatorVariable+"="+host), env...)
	return contender.Start(cmd)
}

// ofSpindle is the side of spindle: each process has a client of Spanner.
func (s *spanner) ofSpindle(ctx context.Context, host string) (site, error) {
	database := s.database()
	if err := tool(ctx, s.host, s.spindle, "-create", "-database", database); err != nil {
		return site{}, err
	}
	return site{
		compete: func(_ context.Context, _, lock string, lease time.Duration, ask bool) (*contender.Process, error) {
			args := []string{"-database", database, "-lock", lock, "-lease", lease.String()}
			if ask {
				args = append(args, "-ask", asking.String())
			}
			return contend(host, exec.Command(s.spindle, args...))
		},
		close: func() {},
	}, nil
}

// asking is how often a waiting process asks spindle whether it leads.
const asking = 50 * time.Millisecond

// ofRegent is the side of Regent: one `regent serve` on Spanner, and a client of it in each process.
func (s *spanner) ofRegent(ctx context.Context, host string) (site, error) {
	store := "spanner:" + s.database()
	if err := tool(ctx, s.host, s.binary, "migrate", "--store", store); err != nil {
		return site{}, err
	}
	server, err := serve(ctx, "regent on Spanner", exec.Command(s.binary, "serve", "--dev", "--listen", "127.0.0.1:0", "--store", store), emulatorVariable+"="+host)
	if err != nil {
		return site{}, err
	}
	self, err := os.Executable()
	if err != nil {
		server.stop()
		return site{}, err
	}
	return site{
		compete: func(_ context.Context, id, lock string, lease time.Duration, _ bool) (*contender.Process, error) {
			text, err := json.Marshal(campaign{server.address, leadership.CandidateID(id), leadership.Election(lock), lease})
			if err != nil {
				return nil, err
			}
			return contend(host, exec.Command(self), campaignVariable+"="+string(text))
		},
		close: server.stop,
	}, nil
}

// campaign is what a process that campaigns for Regent has to know.
type campaign struct {
	Address   string
	Candidate leadership.CandidateID
	Election  leadership.Election
	Lease     time.Duration
}

// campaignVariable holds the campaign of a process that is to be a contender.
const campaignVariable = "BENCH_CAMPAIGN"

// runCampaign campaigns, keeps the lease, and obeys.
func runCampaign(ctx context.Context, text string) error {
	var c campaign
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	a, err := regentAt(&server{address: c.Address}).newAgent(c.Candidate, c.Lease)
	if err != nil {
		return err
	}
	lease, err := a.Campaign(ctx, c.Election)
	if err != nil {
		return err
	}
	contender.Report(contender.Leads)
	contender.Report(contender.Told)
	return contender.Obey(func() error { return lease.Resign(ctx) })
}

// The contests.
const (
	killedID   = "spindle-killed"
	releasedID = "spindle-released"
	callsID    = "spindle-calls"
)

// takeOvers returns the entrants of a contest about take-overs, and its pairs. What spindle's two
// entrants do is the same; they differ in how the next leader hears of it.
func takeOvers() ([]Entrant, []Pair) {
	return []Entrant{
			{"spindle, asked", fmt.Sprintf("the waiting process calls `HasLock` every %v, a query each; from the first that says yes", asking)},
			{"spindle, told", "the same take-over, from when the callback of `WithLeaderCallback` says so: `Run` calls it once in each duration"},
			{"Regent", "`Campaign` of leadership/client, which waits in line at one `regent serve` and returns when this process leads"},
		}, []Pair{
			{Regent: 2, Other: 0, Measure: Median}, {Regent: 2, Other: 1, Measure: Median}, {Regent: 2, Other: 0, Measure: Last},
		}
}

func (s *spanner) killed(ctx context.Context) (Contest, error) {
	entrants, pairs := takeOvers()
	return s.takeOver(ctx, Contest{
		ID: killedID, Title: "Take-over when the leader is killed", Entrants: entrants, Pairs: pairs,
		About: "A process leads and another one waits, at least two leases long. The leader is killed (SIGKILL) at a random moment of its lease. A sample is from " +
			"the kill to when the waiting process learns that it leads. spindle lets the next one in when the last heartbeat is older than the duration and a second, " +
			"and each process looks once in a duration.",
	}, func(_ context.Context, leader *contender.Process) (time.Duration, error) { return leader.Kill() })
}

func (s *spanner) released(ctx context.Context) (Contest, error) {
	entrants, pairs := takeOvers()
	return s.takeOver(ctx, Contest{
		ID: releasedID, Title: "Take-over when the leader releases", Entrants: entrants, Pairs: pairs,
		About: "The same, but the leader gives up at that moment, and its process lives on. Regent's calls `Resign`. spindle has no call that releases: its documented way, " +
			"also that of its `Unlock`, is to cancel the context of `Run`, which writes nothing, so the next one waits until the heartbeat is too old.",
	}, func(ctx context.Context, leader *contender.Process) (time.Duration, error) {
		return leader.Release(ctx)
	})
}

// takeOverTimeout is how long the next process may take, in leases, beside a constant time.
const (
	takeOverLeases  = 12
	takeOverTimeout = 30 * time.Second
)

// takeOver is a contest in which so many leaders end, each in a process of its own, and as many
// processes wait for one of them each.
func (s *spanner) takeOver(ctx context.Context, c Contest, end func(context.Context, *contender.Process) (time.Duration, error)) (Contest, error) {
	c.Of, c.Kind, c.Other = "s leases", Few, spindleName
	for _, lease := range s.Leases {
		c.Rows = append(c.Rows, Row{Size: seconds(lease), Samples: make([][]Sample, len(c.Entrants))})
	}
	for round := range s.TakeOverRounds {
		sides := []func() error{
			func() error {
				return s.endAll(ctx, c, s.ofSpindle, []contender.Event{contender.Leads, contender.Told}, 0, end)
			},
			func() error { return s.endAll(ctx, c, s.ofRegent, []contender.Event{contender.Leads}, 2, end) },
		}
		if round%2 == 1 {
			slices.Reverse(sides)
		}
		for _, run := range sides {
			if err := run(); err != nil {
				return c, err
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, s.TakeOverRounds, c.ID)
	}
	return c, nil
}

// endAll runs one round of one side: all leases at once, and as many leaders of each. What happens
// to the next leader is sampled event by event, for the entrants from first on.
func (s *spanner) endAll(ctx context.Context, c Contest, of side, events []contender.Event, first int, end func(context.Context, *contender.Process) (time.Duration, error)) error {
	place, err := of(ctx, s.host)
	if err != nil {
		return err
	}
	defer place.close()
	begin, each := time.Now(), s.TakeOvers
	took, early := make([][]time.Duration, len(s.Leases)*each), make([]int, len(s.Leases)*each)
	err = load.Each(len(took), len(took), func(i int) (err error) {
		for {
			took[i], err = endOne(ctx, place, fmt.Sprintf("lock-%d-%d", i, early[i]), s.Leases[i/each], events, end)
			if !errors.Is(err, errEarly) || early[i] == mostEarly {
				return err
			}
			early[i]++
		}
	})
	if err != nil {
		return err
	}
	for i := range s.Leases {
		for k := range events {
			var of []time.Duration
			failed := 0
			for j := i * each; j < (i+1)*each; j++ {
				of, failed = append(of, took[j][k]), failed+early[j]
			}
			sample := sampleOf(begin, of)
			if failed > 0 {
				sample.Errors, sample.Failure = failed, errEarly.Error()
			}
			c.Rows[i].Samples[first+k] = append(c.Rows[i].Samples[first+k], sample)
		}
	}
	return nil
}

// errEarly says that there was nothing to take over any more. It is tried again, and counted.
var errEarly = errors.New("the leader lost its lock before it was ended")

// mostEarly is how often one take-over is tried again.
const mostEarly = 3

// endOne ends one leader, and returns how long after it each event came to the next.
func endOne(ctx context.Context, place site, lock string, lease time.Duration, events []contender.Event, end func(context.Context, *contender.Process) (time.Duration, error)) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, takeOverTimeout+takeOverLeases*lease)
	defer cancel()
	leader, err := place.compete(ctx, "leader", lock, lease, false)
	if err != nil {
		return nil, err
	}
	defer leader.Stop()
	if _, err := leader.Await(ctx, contender.Told); err != nil {
		return nil, err
	}
	next, err := place.compete(ctx, "next", lock, lease, true)
	if err != nil {
		return nil, err
	}
	defer next.Stop()
	<-time.After(2*lease + rand.N(lease)) // by then the one waits and the other renews
	ended, err := end(ctx, leader)
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	for _, e := range events {
		at, err := next.Await(ctx, e)
		if err != nil {
			return nil, err
		}
		if at < ended {
			return nil, errEarly
		}
		took = append(took, at-ended)
	}
	return took, nil
}

// The aspects of the calls: what goes on while they are counted.
func situations() []string {
	return []string{"no one competes", "one leads", "one leads and one waits"}
}

// calls counts the calls of Spanner, everything at the same time: each situation has a database, and
// a counter in front of the emulator.
func (s *spanner) calls(ctx context.Context) (Contest, error) {
	c := Contest{
		ID: callsID, Title: "Calls of Spanner", Of: "s leases", Kind: Calls, Other: spindleName,
		About: fmt.Sprintf("gRPC calls of Spanner, counted on the wire by a proxy in front of the emulator for %v, and multiplied up to an hour. They begin when all processes are there "+
			"and two leases have passed. What one waiting process needs is the difference of the last two rows of a lease.", s.CallsFor),
		Entrants: []Entrant{
			{"spindle", "each process asks once in a duration; the leader's heartbeat is a transaction each half to whole duration, at random. No one calls `HasLock`, which is one call more each time"},
			{"Regent", "one `regent serve`, which renews the leader's lease and looks for events that are not announced yet; processes call Regent, not Spanner"},
		},
		Pairs: []Pair{{Regent: 1, Other: 0, Measure: Hourly}},
	}
	sides, aspects := []side{s.ofSpindle, s.ofRegent}, situations()
	for _, lease := range s.CallLeases {
		for _, aspect := range aspects {
			c.Rows = append(c.Rows, Row{seconds(lease), aspect, make([][]Sample, len(sides))})
		}
	}
	n := len(c.Rows) * len(sides)
	err := load.Each(n, n, func(i int) error {
		row, k := i/len(sides), i%len(sides)
		sample, err := s.count(ctx, sides[k], s.CallLeases[row/len(aspects)], row%len(aspects))
		c.Rows[row].Samples[k] = []Sample{sample}
		return err
	})
	return c, err
}

// count counts the calls of one side while so many processes compete.
func (s *spanner) count(ctx context.Context, of side, lease time.Duration, processes int) (Sample, error) {
	counter, err := proxy.OpenCounter(s.host)
	if err != nil {
		return Sample{}, err
	}
	defer counter.Close()
	place, err := of(ctx, counter.Addr())
	if err != nil {
		return Sample{}, err
	}
	defer place.close()
	ready, cancel := context.WithTimeout(ctx, takeOverTimeout+takeOverLeases*lease)
	defer cancel()
	for i := range processes {
		p, err := place.compete(ready, fmt.Sprintf("agent-%d", i), "lock", lease, false)
		if err != nil {
			return Sample{}, err
		}
		defer p.Stop()
		if i > 0 {
			continue
		}
		if _, err := p.Await(ready, contender.Told); err != nil {
			return Sample{}, err
		}
	}
	<-time.After(2 * lease)
	counter.Take()
	begin := time.Now()
	<-time.After(s.CallsFor)
	calls := counter.Take()
	return Sample{Count: float64(calls.Total()), Seconds: time.Since(begin).Seconds(), Calls: calls}, nil
}
