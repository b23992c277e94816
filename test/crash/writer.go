package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"regent/leadership"
	"regent/leadership/service"
	"regent/store/file"
)

// script says which calls the writer makes on a file in one start. Its numbers have no defaults.
type script struct {
	Path    string
	Seed    uint64
	Start   int // there are several on one file, from 0
	Callers int // at the same time
	Calls   int // of each
	// Fill is how many elections are acquired first, with as much metadata as they can have: each
	// Times times, at the same time if there are several callers. 0 Times is 1.
	Fill, Times int
	Checkpoint  int64 // as in file.Config
	Abandon     bool  // ends without closing the store
}

// writer runs a script on the real store. It prints each call before it is made and each answer
// when it has come, in a line each.
type writer struct {
	script
	clock   *clock
	store   *file.Store
	service *service.Service
	told    changes
}

// clock advances by a microsecond each time it is read, so that every transaction has its own
// instant, and by more on jump.
type clock struct{ reading atomic.Int64 }

func startClock(at time.Duration) *clock {
	c := new(clock)
	c.reading.Store(int64(at))
	return c
}

func (c *clock) now() time.Duration { return time.Duration(c.reading.Add(int64(time.Microsecond))) }

func (c *clock) jump(d time.Duration) { c.reading.Add(int64(d)) }

// align advances to the next whole millisecond, so that what follows does not depend on how often
// the clock was read before: a batch of renewals reads it once or several times.
func (c *clock) align() {
	const grid = int64(time.Millisecond)
	c.reading.Store((c.reading.Load()/grid + 1) * grid)
}

// changes are the events of the calls under way, by the call's id.
type changes struct {
	mu   sync.Mutex
	byID map[string][]leadership.Event // guarded by mu
}

// Publish implements service.Publisher.
func (c *changes) Publish(events ...leadership.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := events[0].RequestID
	c.byID[id] = append(c.byID[id], events...)
}

func (c *changes) take(id string) []leadership.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer delete(c.byID, id)
	return c.byID[id]
}

// write runs the script. A store that fails is not an error: it is printed.
func write(s script) error {
	w := &writer{script: s, clock: startClock(beginning(s.Start)), told: changes{byID: make(map[string][]leadership.Event)}}
	var err error
	machine := file.Clock{BootID: boot, SinceBoot: w.clock.now}
	w.store, err = file.Open(s.Path, file.Config{Clock: machine, History: history, Checkpoint: s.Checkpoint})
	if err != nil {
		return w.say(line{Told: true, Code: codeOpen, Detail: err.Error()})
	}
	w.service = service.New(w.store, &w.told)
	if err := errors.Join(w.fill(), w.callers()); err != nil || s.Abandon {
		return err
	}
	err = w.store.Close()
	select {
	case <-w.store.Broken():
		return nil // it was said
	default:
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err) // acknowledged commits are there all the same
		return nil
	}
	return w.say(line{Closed: true})
}

// callers lets all callers make their calls.
func (w *writer) callers() (err error) {
	s := w.script
	errs := make(chan error, s.Callers)
	for i := range s.Callers {
		c := &caller{
			writer: w,
			id:     leadership.CandidateID("agent-" + strconv.Itoa(i)),
			random: rand.New(rand.NewPCG(s.Seed, uint64(s.Start)<<32|uint64(i))),
			held:   make(map[leadership.Election]lease),
		}
		go func() { errs <- c.work() }()
	}
	for range s.Callers {
		err = errors.Join(err, <-errs)
	}
	return err
}

// say writes the line in one call, so that it is never interleaved with another.
func (w *writer) say(l line) error {
	l.Reading = int64(w.clock.now())
	text, err := l.encode()
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	return err
}

// ask prints the call, makes it, and prints the answer.
func (w *writer) ask(l line, call func(context.Context) ([]leadership.Lease, error)) ([]leadership.Lease, error) {
	if err := w.say(l); err != nil {
		return nil, err
	}
	leases, err := call(leadership.WithRequestID(context.Background(), l.ID))
	answer := line{ID: l.ID, Told: true, Leases: leases, Events: w.told.take(l.ID)}
	if err != nil {
		answer.Code, answer.Detail = codeOf(err), err.Error()
	}
	return leases, w.say(answer)
}

func codeOf(err error) string {
	if code, ok := errors.AsType[leadership.Code](err); ok {
		return string(code)
	}
	return codeOther
}

// one is the answer of a call that returns a lease.
func one(l leadership.Lease, err error) ([]leadership.Lease, error) {
	if err != nil {
		return nil, err
	}
	return []leadership.Lease{l}, nil
}
