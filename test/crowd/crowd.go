package crowd

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"regent/leadership"
)

// Kind is what the agents of a crowd do.
type Kind string

// The kinds.
const (
	Waiters  Kind = "waiters"  // ask to lead, wait, and ask again until they do; then they do nothing more
	Watchers Kind = "watchers" // read the stream of the election
)

// Config is what a crowd does.
type Config struct {
	Kind     Kind
	Size     int
	Servers  []string // host:port; the agents take them in turn
	Election leadership.Election
	From     string // the address on loopback that they connect from
}

// Report is what happened: one of its members. Instants are those of boottime.Now, which is the same in all processes of a machine.
type Report struct {
	// Present says that all have connected: that all waiters have asked, or that all watchers have been told how things are.
	Present bool `json:"present,omitempty"`
	// Grant is a waiter that leads.
	Grant *Grant `json:"grant,omitempty"`
	// Heard is a revision that all watchers have heard of.
	Heard *Heard `json:"heard,omitempty"`
	// Again is the number of waiters that have asked again since the last report of it, as they have to after each wait.
	Again int `json:"again,omitempty"`
	// Failure is what should not happen.
	Failure string `json:"failure,omitempty"`
}

// Grant is a waiter that leads, with what it takes to release its lease.
type Grant struct {
	At          time.Duration          `json:"at"`
	CandidateID leadership.CandidateID `json:"candidateId"`
	Key         string                 `json:"key"`
	Token       leadership.Token       `json:"token"`
	Revision    leadership.Revision    `json:"revision"`
}

// Heard is a revision that all have heard of.
type Heard struct {
	Revision leadership.Revision `json:"revision"`
	First    time.Duration       `json:"first"`
	Last     time.Duration       `json:"last"`
}

// variable holds a crowd's Config.
const variable = "CROWD_OF_AGENTS"

// Crowd is a running one.
type Crowd struct {
	// Reports are what happens. They have to be read.
	Reports <-chan Report
	leave   func()
}

// Start starts a crowd, which stays until the test ends or Leave.
func Start(tb testing.TB, c Config) *Crowd {
	tb.Helper()
	spec, err := json.Marshal(c)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+string(spec))
	cmd.Stderr = os.Stderr
	home, err := cmd.StdinPipe() // at whose end the crowd leaves, also if this process is killed
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	reports := make(chan Report, 1024)
	left := make(chan struct{})
	go func() {
		defer close(left)
		defer close(reports)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var r Report
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				r = Report{Failure: lines.Text()}
			}
			reports <- r
		}
		cmd.Wait()
	}()
	leave := sync.OnceFunc(func() {
		home.Close()
		for {
			select {
			case <-reports: // that nobody reads any more
			case <-left:
				return
			}
		}
	})
	tb.Cleanup(leave)
	return &Crowd{Reports: reports, leave: leave}
}

// Leave closes all connections, and returns when the crowd is gone.
func (c *Crowd) Leave() { c.leave() }
