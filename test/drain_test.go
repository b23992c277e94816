package test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
	"regent/test/machine"
)

// An instance is told to stop while many candidates wait and many clients watch there. Each waiting
// call is answered, and the instance ends. At another instance the watchers resume from their
// cursors and have missed nothing, and the candidates lead in the end.
func TestAnInstanceThatStopsLosesNoWaiterOrWatcher(t *testing.T) {
	machine.Share(t)
	size := machine.Size(60, max(300, min(*crowded, 1000)))
	in := inFirestore(t).announcing(newTopic(t))
	x := &departure{T: t, ctx: within(t, 5*time.Minute), a: live(t, in.serve(t)), b: live(t, in.serve(t)), led: make(chan leadership.CandidateID, size)}
	key := leadership.NewKey()
	g, err := x.a.client.Acquire(x.ctx, leadership.AcquireRequest{Election: planner, CandidateID: "ann", Key: &key, LeaseDuration: time.Hour})
	require.NoError(t, err)
	x.gather(size)
	x.change(x.a, 5)
	require.NoError(t, x.a.cmd.Process.Signal(syscall.SIGTERM))
	begun := time.Now()
	x.change(x.b, 5)
	<-x.a.gone
	t.Logf("gone after %v", time.Since(begun).Round(time.Millisecond))
	if code := x.a.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the instance ends with exit code %d\n%s", code, x.a.log)
	}
	x.change(x.b, 5)
	if _, err := x.b.client.Do(x.ctx, leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: planner, CandidateID: "ann", Key: key, Token: g.Token}}); err != nil {
		t.Error(err)
	}
	select {
	case <-x.led:
	case <-x.ctx.Done():
		t.Errorf("no candidate leads at the other instance\n%s", x.b.log)
	}
	x.heard.Wait()
}

// departure is a crowd of clients that move from one instance to another.
type departure struct {
	*testing.T
	ctx     context.Context // ends when all is over
	a, b    *server
	there   sync.WaitGroup              // who watch at a
	heard   sync.WaitGroup              // who have not heard of all changes yet
	led     chan leadership.CandidateID // those who lead
	changes int
}

// gather lets size candidates wait at a, and as many clients watch.
func (x *departure) gather(size int) {
	ctx, cancel := context.WithCancel(x.ctx)
	var all sync.WaitGroup
	x.Cleanup(func() { cancel(); all.Wait() })
	for i := range size {
		x.there.Add(1)
		x.heard.Add(1)
		all.Go(func() { x.watch(ctx, fmt.Sprintf("watcher-%d", i)) })
		all.Go(func() { x.wait(ctx, leadership.CandidateID(fmt.Sprintf("agent-%d", i))) })
	}
	x.there.Wait()
	machine.Eventually(x, "all candidates stand in line", func() bool {
		explained, err := x.a.client.Explain(x.ctx, leadership.ExplainRequest{Election: planner, CandidateID: "agent-0"})
		return err == nil && slices.ContainsFunc(explained.Causes, func(c leadership.Cause) bool { return c.Code == leadership.ReasonInLine && c.Of == size })
	})
}

// watch reads the stream at a until a is gone, and then at b, until the next candidate leads.
func (x *departure) watch(ctx context.Context, name string) {
	defer x.heard.Done()
	known, cursor := leadership.Revision(0), ""
	leave, left := context.WithCancel(ctx)
	go func() {
		<-x.a.gone
		left()
	}()
	defer left()
	there := sync.OnceFunc(x.there.Done)
	defer there()
	for _, at := range []struct {
		ctx context.Context
		s   *server
	}{{leave, x.a}, {ctx, x.b}} {
		for n, err := range at.s.client.Watch(at.ctx, client.WatchRequest{Election: planner, After: cursor}) {
			switch {
			case err != nil && at.ctx.Err() == nil:
				x.Errorf("%s: %v", name, err)
				return
			case err != nil:
			case n.Lease != nil:
				known, cursor = n.Lease.Revision, n.Cursor
				there()
			case n.Event != nil && n.Event.Revision != known+1:
				x.Errorf("%s: after revision %d comes %d", name, known, n.Event.Revision)
				return
			case n.Event != nil:
				if known, cursor = n.Event.Revision, n.Cursor; n.Event.Type == leadership.EventAcquired && n.Event.Token == 2 {
					return
				}
			}
		}
	}
}

// wait stands in line at a until a drains, and then at b, until it leads.
func (x *departure) wait(ctx context.Context, who leadership.CandidateID) {
	ask := leadership.AcquireRequest{Election: planner, CandidateID: who, Key: new(leadership.NewKey()), LeaseDuration: time.Hour, Wait: leadership.MaxWait}
	_, err := x.a.client.Acquire(ctx, ask)
	if !errors.Is(err, wire.Draining) {
		x.Errorf("%s is answered: %v", who, err)
	}
	for err != nil && ctx.Err() == nil {
		_, err = x.b.client.Acquire(ctx, ask)
		if err != nil && ctx.Err() == nil && !errors.Is(err, leadership.LeaseHeld) {
			x.Errorf("%s at the other instance: %v", who, err)
			return
		}
	}
	if err == nil {
		x.led <- who
	}
}

// change makes changes.
func (x *departure) change(at *server, n int) {
	x.Helper()
	for range n {
		x.changes++
		_, err := at.client.Do(x.ctx, leadership.Configure{Election: planner, Config: leadership.Config{LockDelay: time.Duration(x.changes) * time.Millisecond}})
		if err != nil {
			x.Error(err)
		}
	}
}
