package test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
	"regent/test/checker"
	"regent/test/machine"
)

// An instance is told to stop while hundreds of candidates wait and hundreds of clients watch
// there. Each waiting call is answered, each stream ends with a cursor, and the instance ends in
// time. At another instance the watchers resume from their cursors and have missed nothing, and the
// candidates lead in the end.
func TestAnInstanceThatStopsLosesNoWaiterOrWatcher(t *testing.T) {
	machine.Share(t)
	size := few
	if *crowded > few {
		size = 1000
	}
	leave(t, size)
}

// goneWithin is how long an instance may take from SIGTERM to its end. Cloud Run grants 10 s;
// beside other tests the short form has no such bound.
func goneWithin() time.Duration { return machine.Size(time.Minute, 8*time.Second) }

func leave(tb testing.TB, size int) {
	in := inFirestore(tb).announcing(newTopic(tb))
	x := &departure{tb: tb, a: live(tb, in.serve(tb)), b: live(tb, in.serve(tb)), led: make(chan leadership.CandidateID, size)}
	x.ctx = within(tb, 5*time.Minute)
	key := leadership.NewKey()
	g, err := x.a.client.Acquire(x.ctx, leadership.AcquireRequest{Election: planner, CandidateID: "ann", Key: &key, LeaseDuration: time.Hour})
	if err != nil {
		tb.Fatal(err)
	}
	x.gather(size)
	x.change(x.a, 5)
	took := x.stop()
	x.change(x.b, 5)
	x.left.Wait()
	if _, err := x.b.client.Release(x.ctx, leadership.LeaseRequest{Election: planner, CandidateID: "ann", Key: key, Token: g.Token}); err != nil {
		tb.Error(err)
	}
	select {
	case <-x.led:
	case <-time.After(patience):
		tb.Errorf("no candidate leads at the other instance\n%s", x.b.log)
	}
	x.change(x.b, 5)
	x.check()
	tb.Logf("gone after %v; of %d waiters: %v; of %d watchers: %v", took.Round(time.Millisecond), size, &x.waiters, size, &x.watchers)
	for fate := range x.waiters.counts {
		if fate != "draining" && fate != "granted" {
			tb.Errorf("waiters are answered: %s", fate)
		}
	}
	if x.watchers.counts["draining"] != size {
		tb.Errorf("not all streams end with a cursor because the instance drains")
	}
}

// departure is a crowd of clients that move from one instance to another.
type departure struct {
	tb                testing.TB
	ctx               context.Context // ends when all is over
	a, b              *server
	recorder          checker.Recorder
	there, left       sync.WaitGroup // those who have come to a, and are still there
	waiters, watchers fates
	led               chan leadership.CandidateID // those who lead
	changes           int
}

// gather lets size candidates wait at a, and as many clients watch, one in ten of them all
// elections.
func (x *departure) gather(size int) {
	ctx, cancel := context.WithCancel(x.ctx)
	var all sync.WaitGroup
	x.tb.Cleanup(func() { cancel(); all.Wait() })
	for i := range size {
		path := streamOf(planner)
		if i%10 == 0 {
			path = wire.PathEvents
		}
		x.there.Add(1)
		x.left.Add(2)
		all.Go(func() { x.watch(ctx, fmt.Sprintf("watcher-%d", i), path) })
		all.Go(func() { x.wait(ctx, leadership.CandidateID(fmt.Sprintf("agent-%d", i))) })
	}
	x.there.Wait()
	for standing := 0; standing < size; {
		explained, err := x.a.client.Explain(x.ctx, leadership.ExplainRequest{Election: planner, CandidateID: "agent-0"})
		if err != nil {
			x.tb.Fatalf("%d of %d candidates stand in line: %v", standing, size, err)
		}
		for _, c := range explained.Causes {
			if c.Code == leadership.ReasonInLine {
				standing = c.Of
			}
		}
	}
}

func (x *departure) watch(ctx context.Context, name, path string) {
	f := listener(name, path, &x.recorder)
	expect := f.ready
	f.ready = func() { expect(); x.there.Done() }
	err := f.follow(ctx, x.a)
	x.watchers.add(string(f.reason), err)
	x.left.Done()
	for ctx.Err() == nil {
		if err := f.follow(ctx, x.b); err != nil && ctx.Err() == nil {
			x.tb.Errorf("%s at the other instance: %v", name, err)
			return
		}
	}
}

func (x *departure) wait(ctx context.Context, who leadership.CandidateID) {
	ask := leadership.AcquireRequest{Election: planner, CandidateID: who, Key: new(leadership.NewKey()), LeaseDuration: time.Hour, Wait: leadership.MaxWait}
	_, err := x.a.client.Acquire(ctx, ask)
	if errors.Is(err, wire.Draining) {
		x.waiters.add("draining", nil)
	} else {
		x.waiters.add("granted", err)
	}
	x.left.Done()
	for err != nil && ctx.Err() == nil {
		_, err = x.b.client.Acquire(ctx, ask)
		if err != nil && ctx.Err() == nil && !errors.Is(err, leadership.LeaseHeld) {
			x.tb.Errorf("%s at the other instance: %v", who, err)
			return
		}
	}
	if err == nil {
		x.led <- who
	}
}

// change makes changes.
func (x *departure) change(at *server, n int) {
	x.tb.Helper()
	for range n {
		x.changes++
		if err := configure(x.ctx, at, planner, time.Duration(x.changes)*time.Millisecond); err != nil {
			x.tb.Error(err)
		}
	}
}

// stop tells a to stop, and makes changes at b while it does.
func (x *departure) stop() (took time.Duration) {
	x.tb.Helper()
	begin := time.Now()
	if err := x.a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		x.tb.Fatal(err)
	}
	x.change(x.b, 5)
	select {
	case <-x.a.gone:
	case <-time.After(2 * goneWithin()):
		x.tb.Fatalf("the instance does not stop\n%s", x.a.log)
	}
	took = time.Since(begin)
	if code := x.a.cmd.ProcessState.ExitCode(); took > goneWithin() || code != 0 {
		x.tb.Errorf("the instance is gone after %v, with exit code %d\n%s", took, code, x.a.log)
	}
	return took
}

// check waits until all watchers have heard everything. The stream of one election must not repeat
// an event.
func (x *departure) check() {
	x.tb.Helper()
	recording, report := awaitAnnounced(x.ctx, x.tb, x.b, &x.recorder)
	if err := report.Err(); err != nil {
		x.tb.Errorf("%v\n%s", err, keep(x.tb, recording))
	}
	recording.Consumers = slices.DeleteFunc(recording.Consumers, func(c checker.Consumer) bool { return len(c.Elections) == 0 })
	if one := checker.EV(recording); one.Duplicates > 0 {
		x.tb.Errorf("%d events of the streams of one election came twice\n%s", one.Duplicates, keep(x.tb, recording))
	}
	x.tb.Logf("%d changes, %d deliveries due, %d more", len(recording.History), report.Checked, report.Duplicates)
}

// awaitAnnounced waits until all consumers have heard the server's whole history, or for long
// enough.
func awaitAnnounced(ctx context.Context, tb testing.TB, s *server, recorder *checker.Recorder) (checker.Recording, checker.Report) {
	tb.Helper()
	const sweep = 32 * time.Second // until another instance announces what one has left behind
	for deadline := time.Now().Add(sweep + patience); ; <-time.After(100 * time.Millisecond) {
		recording := recorder.Recording(wholeHistory(ctx, tb, s))
		report := checker.EV(recording)
		if report.Err() == nil || time.Now().After(deadline) {
			return recording, report
		}
	}
}

// fates counts the clients by their fate.
type fates struct {
	mu     sync.Mutex // guards counts
	counts map[string]int
}

// add counts one: its fate, or the error if there is one.
func (f *fates) add(fate string, err error) {
	if err != nil {
		fate = err.Error()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts == nil {
		f.counts = make(map[string]int)
	}
	f.counts[fate]++
}

func (f *fates) count(fate string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[fate]
}

func (f *fates) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var parts []string
	for _, fate := range slices.Sorted(maps.Keys(f.counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", f.counts[fate], fate))
	}
	return strings.Join(parts, ", ")
}
