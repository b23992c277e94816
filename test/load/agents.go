package load

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/client"
)

// Main runs a crowd if the environment asks for one, until the standard input ends. It reports
// whether it did; the caller must then exit.
func Main() (is bool) {
	spec, is := os.LookupEnv(variable)
	if !is {
		return false
	}
	m := &members{out: json.NewEncoder(os.Stdout), heard: make(map[leadership.Revision]*hearing), states: make(map[string]int)}
	m.sdks = sync.OnceValues(m.newSDKs)
	if err := json.Unmarshal([]byte(spec), &m.Config); err != nil {
		m.report(Report{Failure: err.Error()})
		return true
	}
	go m.gather()
	for asked := bufio.NewScanner(os.Stdin); asked.Scan(); { // see Crowd.Ask
		m.report(Report{States: m.copyStates()})
	}
	return true
}

// members are the agents of a crowd.
type members struct {
	Config
	sdks func() ([]*client.Client, error)

	mu      sync.Mutex // guards all below
	out     *json.Encoder
	present int
	heard   map[leadership.Revision]*hearing
	states  map[string]int // how many agents are in each
}

// move counts agent i in its new state, from its last one, "" for none.
func (m *members) move(i int, from *string, format string, args ...any) {
	to := m.Servers[i%len(m.Servers)] + ": " + fmt.Sprintf(format, args...)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.states[to]++
	if m.states[*from]--; m.states[*from] <= 0 {
		delete(m.states, *from)
	}
	*from = to
}

func (m *members) copyStates() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.states)
}

// hearing counts the watchers that have received a revision.
type hearing struct {
	count       int
	first, last time.Duration
}

// connecting is how many agents connect at a time.
const connecting = 64

// gather starts all agents, a few at a time.
func (m *members) gather() {
	behave := map[Kind]func(int, func()) error{Waiters: m.wait, Watchers: m.watch, Leaders: m.campaign, Candidates: m.campaign}[m.Kind]
	slots := make(chan struct{}, connecting)
	for i := range m.Size {
		slots <- struct{}{}
		free := sync.OnceFunc(func() { <-slots })
		connected := func() { free(); m.enter() }
		go func() {
			defer free()
			if err := behave(i, connected); err != nil {
				m.report(Report{Failure: fmt.Sprintf("%s %d: %v", m.Kind, i, err)})
			}
		}()
	}
}

func (m *members) report(r Report) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tell(r)
}

// tell is report with mu held.
func (m *members) tell(r Report) { m.out.Encode(r) } // an error means that the reader has gone

// enter counts an agent that is there.
func (m *members) enter() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.present++; m.present == m.Size {
		m.tell(Report{Present: true})
	}
}

// hear counts a watcher that has received a revision.
func (m *members) hear(r leadership.Revision, at time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := m.heard[r]
	if !ok {
		h = &hearing{first: at}
		m.heard[r] = h
	}
	h.first, h.last = min(h.first, at), max(h.last, at)
	if h.count++; h.count == m.Size {
		delete(m.heard, r)
		m.tell(Report{Heard: &Heard{Revision: r, First: h.first, Last: h.last}})
	}
}
