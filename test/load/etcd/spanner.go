package main

import (
	"context"
	"crypto/rand"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"regent/leadership"
	"regent/test/load/etcd/internal/contender"
)

// emulatorVariable is where clients of Spanner look for an emulator.
const emulatorVariable = "SPANNER_EMULATOR_HOST"

// side is one of the two systems: it makes a site on the emulator.
type side func(ctx context.Context) (site, error)

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

// besideSpindle runs the contests with spindle on the emulator at host:port.
func (b *bench) besideSpindle(ctx context.Context, host string) (found OnSpanner, err error) {
	if host == "" {
		return found, fmt.Errorf("no emulator of Spanner is named by %s; see make compare", emulatorVariable)
	}
	s := &spanner{bench: b, host: host}
	if s.spindle, err = build(ctx, ".", "./spindle", b.dir); err != nil {
		return found, err
	}
	info, err := buildinfo.ReadFile(s.spindle)
	if err != nil {
		return found, err
	}
	found.Versions = versionsOf(info.Deps, "github.com/flowerinthenight/spindle/v2", "cloud.google.com/go/spanner")
	for _, run := range []func(context.Context) (Contest, error){s.killed, s.released} {
		contest, err := run(ctx)
		if err != nil {
			return found, fmt.Errorf("%s: %w", contest.Title, err)
		}
		found.Contests = append(found.Contests, contest)
	}
	return found, nil
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
func (s *spanner) tool(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(environ(), emulatorVariable+"="+s.host)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, text)
	}
	return nil
}

// contend starts a process that competes.
func (s *spanner) contend(cmd *exec.Cmd, env ...string) (*contender.Process, error) {
	cmd.Env = append(append(environ(), emulatorVariable+"="+s.host), env...)
	return contender.Start(cmd)
}

// ofSpindle is the side of spindle: each process has a client of Spanner.
func (s *spanner) ofSpindle(ctx context.Context) (site, error) {
	database := s.database()
	if err := s.tool(ctx, s.spindle, "-create", "-database", database); err != nil {
		return site{}, err
	}
	return site{
		compete: func(_, lock string, lease time.Duration) (*contender.Process, error) {
			return s.contend(exec.Command(s.spindle, "-database", database, "-lock", lock, "-lease", lease.String()))
		},
		close: func() {},
	}, nil
}

// ofRegent is the side of Regent: one `regent serve` on Spanner, and a client of it in each
// process.
func (s *spanner) ofRegent(ctx context.Context) (site, error) {
	store := "spanner:" + s.database()
	if err := s.tool(ctx, s.binary, "admin", "migrate", "--store", store); err != nil {
		return site{}, err
	}
	server, err := serve(ctx, "regent on Spanner", exec.Command(s.binary, "serve", "--dev", "--listen", "127.0.0.1:0", "--store", store), emulatorVariable+"="+s.host)
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
			return s.contend(exec.Command(self), campaignVariable+"="+string(text))
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
	return contender.Obey(func() error { return lease.Resign(ctx) })
}
