// Agent is a process of a fault run, with several agents in it: some contend and lead, some watch,
// some read. See package record for its input and output.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/test/faults/record"
)

func main() {
	if err := run(os.Getenv(record.Variable), os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// group is the agents of this process.
type group struct {
	record.Config
	recorder *record.Recorder
	log      *slog.Logger
}

func run(spec string, in io.Reader, out io.Writer) error {
	t := &group{log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if err := json.Unmarshal([]byte(spec), &t.Config); err != nil {
		return fmt.Errorf("%s: %w", record.Variable, err)
	}
	t.recorder = record.NewRecorder(t.Offset, record.LinesTo(out))
	all, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	contending, quiet := context.WithCancel(all)
	defer quiet()
	lines := bufio.NewScanner(in)
	lines.Scan() // the command to begin
	go obey(lines, quiet, stop)
	var playing sync.WaitGroup
	for i, m := range t.Members {
		p, err := t.agent(i, m)
		if err != nil {
			return err
		}
		ctx := contending
		if m.Role == record.Watcher {
			ctx = all
		}
		playing.Go(func() { p.act(ctx) })
	}
	playing.Wait()
	return nil
}

// obey reads the commands for this process.
func obey(lines *bufio.Scanner, quiet, stop func()) {
	for lines.Scan() {
		if lines.Text() == record.Quiet {
			quiet()
		}
	}
	stop()
}

// handingOver is how long a term goes on at most after a hand-over has begun.
func (t *group) handingOver() time.Duration { return max(2*t.Lease, leadership.MinWithin) }

// patience is the timeout of one call without the SDK, beside its wait.
func (t *group) patience() time.Duration { return t.Lease }

// agent returns the agent of a member.
func (t *group) agent(i int, m record.Member) (*agent, error) {
	p := &agent{group: t, Member: m, name: fmt.Sprintf("%s.%d", m.Name, t.Life)}
	p.rand = newRand(t.Seed, uint64(t.Life), uint64(i))
	for s, server := range t.Servers {
		line, err := record.NewProxy(fmt.Sprintf("%s:%d", p.name, s), server, t.recorder)
		if err != nil {
			return nil, err
		}
		c := client.Config{
			Server: line.URL(), Log: t.log.With("server", s), Silence: 3 * time.Second,
			Candidate: client.Candidate{
				ID: candidate(m.Name), LeaseDuration: t.Lease, HandOverWithin: t.handingOver(),
				Priority: m.Candidacy.Priority, Capabilities: m.Candidacy.Capabilities.List(), Load: func() int64 { return m.Candidacy.Load },
			},
		}
		if m.Role != record.Campaigner && m.Role != record.Steady {
			c.HTTP = &http.Client{Timeout: t.patience() + returnWait}
		}
		made, err := client.New(c)
		if err != nil {
			return nil, err
		}
		p.clients = append(p.clients, made)
	}
	return p, nil
}
