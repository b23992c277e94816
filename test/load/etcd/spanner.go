package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"regent/leadership"
	"regent/test/load/etcd/internal/contender"
)

// spindleName is the system that contests on Spanner are with.
const spindleName = "spindle"

// emulatorVariable is where clients of Spanner look for an emulator.
const emulatorVariable = "SPANNER_EMULATOR_HOST"

// side is one of the two systems: it makes a site on the emulator at host:port.
type side func(ctx context.Context, host string) (site, error)

// site is a database of its own, and the server that its side needs there.
type site struct {
	// compete starts a process that competes for a lock.
	compete func(id, lock string, lease time.Duration) (*contender.Process, error)
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

// besideSpindle runs the contests with spindle that are picked. It returns nil if none is.
func (b *bench) besideSpindle(ctx context.Context, picked func(id string) bool) (*OnSpanner, error) {
	if !picked(killedID) && !picked(releasedID) && !picked(callsID) {
		return nil, nil
	}
	begin := time.Now()
	s := &spanner{bench: b, host: b.emulator}
	if s.host == "" {
		host, stop, err := startEmulator(ctx, b.dir)
		if err != nil {
			return nil, err
		}
		defer stop()
		s.host = host
	}
	var err error
	if s.spindle, err = build(ctx, ".", "./spindle", b.dir); err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(s.spindle)
	if err != nil {
		return nil, err
	}
	found := &OnSpanner{
		Date: begin.UTC(), Regent: revision(ctx),
		Versions: versionsOf(info.Deps, "github.com/flowerinthenight/spindle/v2", "cloud.google.com/go/spanner"),
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
			return nil, fmt.Errorf("%s: %w", c.id, err)
		}
		found.Contests = append(found.Contests, contest)
	}
	found.Took = time.Since(begin)
	return found, nil
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
		return "", nil, fmt.Errorf("the Spanner emulator did not start: %s", strings.TrimSpace(told.String()))
	}
	return strings.TrimSpace(line), stop, nil
}

// database returns the name of a database that does not exist yet, also on an emulator that others
// use.
func (s *spanner) database() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	return fmt.Sprintf("projects/compare-%s/instances/instance-%d/databases/leaders", strings.ToLower(rand.Text()[:12]), s.made)
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
		compete: func(_, lock string, lease time.Duration) (*contender.Process, error) {
			return contend(host, exec.Command(s.spindle, "-database", database, "-lock", lock, "-lease", lease.String()))
		},
		close: func() {},
	}, nil
}

// ofRegent is the side of Regent: one `regent serve` on Spanner, and a client of it in each
// process.
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
		compete: func(id, lock string, lease time.Duration) (*contender.Process, error) {
			text, err := json.Marshal(campaign{server.address, leadership.CandidateID(id), leadership.Election(lock), lease})
			if err != nil {
				return nil, err
			}
			return contend(host, exec.Command(self), campaignVariable+"="+string(text))
		},
		close: server.stop,
	}, nil
}

// campaign is the task of a process that campaigns for Regent.
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
