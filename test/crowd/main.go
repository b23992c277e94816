package crowd

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"regent/leadership"
)

// Main is a crowd, if the environment asks for one, until its standard input ends. is says whether that was so.
func Main() (is bool) {
	spec, is := os.LookupEnv(variable)
	if !is {
		return false
	}
	m := &members{out: json.NewEncoder(os.Stdout), heard: make(map[leadership.Revision]*hearing)}
	if err := json.Unmarshal([]byte(spec), &m.Config); err != nil {
		m.report(Report{Failure: err.Error()})
		return true
	}
	go m.gather()
	io.Copy(io.Discard, os.Stdin)
	return true
}

// members are the agents of a crowd.
type members struct {
	Config

	mu      sync.Mutex // guards all below
	out     *json.Encoder
	present int
	again   int
	heard   map[leadership.Revision]*hearing
}

// hearing is how many have heard of a revision.
type hearing struct {
	count       int
	first, last time.Duration
}

// doors is how many connect at a time.
const doors = 64

// gather lets all come, a few at a time.
func (m *members) gather() {
	behave := m.wait
	if m.Kind == Watchers {
		behave = m.watch
	}
	slots := make(chan struct{}, doors)
	for i := range m.Size {
		slots <- struct{}{}
		inside := sync.OnceFunc(func() { <-slots })
		go func() {
			defer inside()
			if err := behave(i, inside); err != nil {
				m.report(Report{Failure: fmt.Sprintf("%s %d: %v", m.Kind, i, err)})
			}
		}()
	}
}

// dial connects agent i to its server, from the crowd's address.
func (m *members) dial(i int) (net.Conn, error) {
	dialer := net.Dialer{Timeout: time.Minute, LocalAddr: &net.TCPAddr{IP: net.ParseIP(m.From)}}
	return dialer.Dial("tcp", m.Servers[i%len(m.Servers)])
}

func (m *members) report(r Report) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tell(r)
}

// tell is report for whoever has the lock.
func (m *members) tell(r Report) { m.out.Encode(r) } // it fails when the test is gone

// enter counts one that is there.
func (m *members) enter() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.present++; m.present == m.Size {
		m.tell(Report{Present: true})
	}
}

// repeat counts one that asks again.
func (m *members) repeat() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.again++; m.again == m.Size {
		m.tell(Report{Again: m.again})
		m.again = 0
	}
}

// hear counts one that hears of a revision.
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
