package load

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"regent/leadership"
)

// Kind says what the agents of a crowd do.
type Kind string

// The kinds.
const (
	Waiters  Kind = "waiters"  // ask to lead and wait, until they do; then they do nothing more
	Watchers Kind = "watchers" // read the stream of the election
	// These use the Go SDK, and each has an election of its own, whose name ends with its number.
	Leaders    Kind = "leaders"    // lead, and renew
	Candidates Kind = "candidates" // wait until they lead
)

// Config describes a crowd.
type Config struct {
	Kind     Kind
	Size     int
	Servers  []string // host:port; the agents take them in turn
	Election leadership.Election
	From     string // the loopback address to connect from; "" for any
	// With the Go SDK.
	First int           // the first agent's number
	Lease time.Duration // of its leases
}

// Report is one thing that happened: exactly one field is set. Instants are those of boottime.Now,
// which is the same in all processes of a machine.
type Report struct {
	// Present: every waiter has asked, or every watcher has received the present state.
	Present bool `json:"present,omitempty"`
	// Grant: a waiter leads.
	Grant *Grant `json:"grant,omitempty"`
	// Heard: every watcher has received this revision.
	Heard *Heard `json:"heard,omitempty"`
	// States answers Crowd.Ask: how many agents are in each state, by server.
	States map[string]int `json:"states,omitempty"`
	// Failure: something happened that must not.
	Failure string `json:"failure,omitempty"`
}

// Grant is a waiter that leads, with what it takes to release its lease.
type Grant struct {
	At          time.Duration          `json:"at"`
	Election    leadership.Election    `json:"election"` // a seat, if the crowd's has seats
	CandidateID leadership.CandidateID `json:"candidateId"`
	Key         string                 `json:"key"`
	Token       leadership.Token       `json:"token"`
	Revision    leadership.Revision    `json:"revision"`
}

// Heard is a revision with the instants of the first and the last watcher that received it.
type Heard struct {
	Revision leadership.Revision `json:"revision"`
	First    time.Duration       `json:"first"`
	Last     time.Duration       `json:"last"`
}

// variable holds a crowd's Config.
const variable = "CROWD_OF_AGENTS"

// Crowd is a running one.
type Crowd struct {
	// Reports must be read. The channel is closed when the crowd's process has ended.
	Reports <-chan Report
	// Ask asks for a report of the agents' states.
	Ask func()
	// Leave closes all connections and returns when the crowd's process has ended. Idempotent.
	Leave func()
}

// Start starts this program again, as a crowd. The crowd also leaves when this process ends.
func Start(c Config) (*Crowd, error) {
	spec, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+string(spec))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe() // the crowd leaves at its end
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	reports := make(chan Report, 1024)
	go func() {
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
	return &Crowd{Reports: reports, Ask: func() { io.WriteString(stdin, "\n") }, Leave: sync.OnceFunc(func() {
		stdin.Close()
		for range reports { // unread reports must not hold the crowd up
		}
	})}, nil
}
