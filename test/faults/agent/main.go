// Agent is a process of a fault run, with several agents in it: those that lead and contend, those that watch, and those that read. See package
// cast for what it is told and what it tells.
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

	"regent/leadership/client"
	"regent/test/faults/cast"
	"regent/test/faults/tap"
)

func main() {
	if err := run(os.Getenv(cast.Variable), os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// troupe is the agents of this process.
type troupe struct {
	cast.Config
	diary *cast.Diary
	log   *slog.Logger
}

func run(spec string, in io.Reader, out io.Writer) error {
	t := &troupe{log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if err := json.Unmarshal([]byte(spec), &t.Config); err != nil {
		return fmt.Errorf("%s: %w", cast.Variable, err)
	}
	t.diary = cast.NewDiary(t.Offset, cast.LinesTo(out))
	all, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	contending, quiet := context.WithCancel(all)
	defer quiet()
	lines := bufio.NewScanner(in)
	lines.Scan() // the word to begin
	go obey(lines, quiet, stop)
	var playing sync.WaitGroup
	for i, m := range t.Members {
		p, err := t.player(i, m)
		if err != nil {
			return err
		}
		ctx := contending
		if m.Role == cast.Watcher {
			ctx = all
		}
		playing.Go(func() { p.play(ctx) })
	}
	playing.Wait()
	return nil
}

// obey reads what is asked of this process.
func obey(lines *bufio.Scanner, quiet, stop func()) {
	for lines.Scan() {
		if lines.Text() == cast.Quiet {
			quiet()
		}
	}
	stop()
}

// patience is how long one call that is made by hand may take, beside its wait.
func (t *troupe) patience() time.Duration { return t.Lease }

// player plays the part of a member.
func (t *troupe) player(i int, m cast.Member) (*player, error) {
	p := &player{troupe: t, Member: m, name: fmt.Sprintf("%s.%d", m.Name, t.Life)}
	p.rand = newRand(t.Seed, uint64(t.Life), uint64(i))
	for s, server := range t.Servers {
		line, err := tap.New(fmt.Sprintf("%s:%d", p.name, s), server, t.diary)
		if err != nil {
			return nil, err
		}
		c := client.Config{
			Server: line.URL(), Log: t.log.With("server", s), Silence: 3 * time.Second,
			Candidate: client.Candidate{ID: candidate(m.Name), LeaseDuration: t.Lease},
		}
		if m.Role != cast.Campaigner && m.Role != cast.Steady {
			c.HTTP = &http.Client{Timeout: t.patience() + maxWait}
		}
		made, err := client.New(c)
		if err != nil {
			return nil, err
		}
		p.clients = append(p.clients, made)
	}
	return p, nil
}
