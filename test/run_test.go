package test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"regent/emulators"
	"regent/leadership"
	"regent/test/machine"
	"regent/test/process"
	"regent/test/proxy"
)

var trials = flag.Int("trials", 0, "how often a regent run is harmed; 0 for 128, or 64 with -short")

const (
	contests      = 16
	storeContests = 8
	// contestLease is three times the shortest: a tenth of it is what a busy machine may take to
	// run the process that ends a command. With less a server in Firestore warns.
	contestLease = 3 * time.Second
	runPatience  = 30 * time.Second
)

// Two runs contend for each of many elections, and the processes that they need are killed or
// stopped in turn. Each time the command must end, with all processes that it started, before its
// lease ends, and before the next one begins.
func TestACommandIsGoneBeforeItsLeaseEnds(t *testing.T) {
	machine.Share(t)
	in, trials := inFile(t), cmp.Or(*trials, machine.Size(64, 128))
	a := newContests(t, in.serve(t), contestLease, contests)
	for round := range max(trials/contests, 4) {
		switch round % 4 {
		case 2:
			a.harmTheServer("server killed", func() {
				a.server.kill()
				a.outlast()
				a.server = in.serve(t)
				a.proxy.leadTo(a.server.URL)
			})
		case 3:
			a.harmTheServer("server stopped", func() {
				a.server.cmd.Process.Signal(syscall.SIGSTOP)
				a.outlast()
				a.server.cmd.Process.Signal(syscall.SIGCONT)
			})
		default:
			a.each(func(i int, c *contest) error { return c.harm(harms[(round/4*2+round%4+i/3)%len(harms)]) }) // i%3 is the kind of command
		}
	}
	a.judge()
}

func TestACommandIsGoneBeforeItsLeaseEndsWhenTheStoreIsAway(t *testing.T) {
	machine.Share(t)
	line, trials := proxy.NewLine(t, emulators.Firestore(t)), cmp.Or(*trials, machine.Size(64, 128))
	a := newContests(t, atFirestore(t, line.Addr()).serve(t), contestLease, storeContests)
	for round := range max(trials/16/storeContests, 2) {
		name, harm := "store stopped", line.Stall
		if round%2 == 1 {
			name, harm = "store killed", line.Cut
		}
		a.harmTheServer(name, func() {
			harm()
			a.outlast()
			line.Heal()
		})
	}
	a.judge()
}

// contestGroup is a group of contests on one server.
type contestGroup struct {
	t        *testing.T
	lease    time.Duration
	server   *server
	proxy    *leaseProxy
	contests []*contest
}

func newContests(t *testing.T, s *server, lease time.Duration, n int) *contestGroup {
	t.Helper()
	a := &contestGroup{t: t, lease: lease, server: s, proxy: newLeaseProxy(t, s.URL)}
	for i := range n {
		a.contests = append(a.contests, newContest(t, a.proxy, lease, i))
	}
	return a
}

// outlast waits until all leases have run out.
func (a *contestGroup) outlast() { <-time.After(a.lease * 3 / 2) }

// each calls do for all contests at once.
func (a *contestGroup) each(do func(int, *contest) error) {
	a.t.Helper()
	errs := make([]error, len(a.contests))
	var wg sync.WaitGroup
	for i, c := range a.contests {
		wg.Go(func() { errs[i] = do(i, c) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			a.t.Error(err)
		}
	}
	if a.t.Failed() {
		a.t.Fatalf("the server says:\n%s", a.server.log)
	}
}

// harmTheServer harms all leaders at once.
func (a *contestGroup) harmTheServer(name string, harm func()) {
	a.t.Helper()
	tokens := make([]leadership.Token, len(a.contests))
	leads := func(i int, c *contest) (err error) {
		tokens[i], _, err = c.leader(within(a.t, runPatience), tokens[i])
		return err
	}
	a.each(leads)
	<-time.After(rand.N(a.lease / 3))
	for i, c := range a.contests {
		tokens[i], _, _ = c.leader(within(a.t, runPatience), 0)
		c.harmed[tokens[i]] = name
	}
	harm()
	a.each(leads)
}

// harm is something that happens to a leader. It returns what ends the harm, once another one
// leads.
type harm struct {
	name string
	do   func(context.Context, *contest, int) (heal func(), err error)
}

var harms = []harm{
	{"wrapper killed", func(_ context.Context, c *contest, i int) (func(), error) { return c.kill(i), nil }},
	{"wrapper stopped", func(_ context.Context, c *contest, i int) (func(), error) { return c.pause(i), nil }},
	{"server silent", func(_ context.Context, c *contest, i int) (func(), error) { return c.proxy.silence(c.election), nil }},
	{"guard killed, then wrapper stopped", func(ctx context.Context, c *contest, i int) (func(), error) {
		_, err := c.harmGuard(ctx, i, syscall.SIGKILL, true)
		return c.pause(i), err
	}},
	{"guard stopped, then wrapper killed", func(ctx context.Context, c *contest, i int) (func(), error) {
		end, err := c.harmGuard(ctx, i, syscall.SIGSTOP, true)
		return both(c.kill(i), end), err
	}},
	{"guard stopped, and server silent", func(ctx context.Context, c *contest, i int) (func(), error) {
		heal := c.proxy.silence(c.election)
		end, err := c.harmGuard(ctx, i, syscall.SIGSTOP, false)
		return both(heal, end), err
	}},
	{"guard killed, and server silent", func(ctx context.Context, c *contest, i int) (func(), error) {
		heal := c.proxy.silence(c.election)
		_, err := c.harmGuard(ctx, i, syscall.SIGKILL, false)
		return heal, err
	}},
}

func both(a, b func()) func() {
	return func() {
		a()
		b()
	}
}

// harm harms the leader at some moment, and waits for the next.
func (c *contest) harm(h harm) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), runPatience)
	defer cancel()
	if _, _, err := c.leader(ctx, 0); err != nil {
		return err
	}
	<-time.After(rand.N(c.lease))
	token, i, err := c.leader(ctx, 0)
	if err != nil {
		return err
	}
	c.harmed[token] = h.name
	heal, err := h.do(ctx, c, i)
	if errors.Is(err, errMissed) {
		delete(c.harmed, token)
		c.missed++
		heal()
		_, _, err := c.leader(ctx, token)
		return err
	}
	if err != nil {
		return fmt.Errorf("%s: %w", h.name, err)
	}
	if h.silent() { // no other candidate can lead either
		<-time.After(c.lease * 3 / 2)
		heal()
		heal = func() {}
	}
	_, _, err = c.leader(ctx, token)
	heal()
	if err != nil {
		return fmt.Errorf("%s: %w", h.name, err)
	}
	return nil
}

// errMissed says that the command ended for another reason before it was harmed.
var errMissed = errors.New("missed")

func (h harm) silent() bool { return strings.HasSuffix(h.name, "server silent") }

func (c *contest) kill(i int) (heal func()) {
	c.runs[i].signal(syscall.SIGKILL)
	<-c.runs[i].gone
	return func() { c.start(i) }
}

func (c *contest) pause(i int) (heal func()) {
	c.runs[i].signal(syscall.SIGSTOP)
	return func() { c.runs[i].signal(syscall.SIGCONT) }
}

// harmGuard signals the guard of a run and, if it should, waits until another one is there. It
// returns what ends a guard that is left stopped.
func (c *contest) harmGuard(ctx context.Context, i int, s syscall.Signal, another bool) (end func(), err error) {
	soon, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	guard, err := guardOf(soon, c.runs[i], 0)
	if err != nil {
		return func() {}, errMissed
	}
	end = func() {
		if process.IsGuard(guard) {
			syscall.Kill(guard, syscall.SIGKILL)
		}
	}
	if err := syscall.Kill(guard, s); err != nil || !another {
		return end, err
	}
	soon, cancel = context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err = guardOf(soon, c.runs[i], guard); err != nil {
		return end, errMissed
	}
	return end, nil
}

// judge checks all commands that ever ran against their leases, and reports the margins.
func (a *contestGroup) judge() {
	a.t.Helper()
	margins := map[string][]time.Duration{}
	harmed, missed := 0, 0
	for _, c := range a.contests {
		harmed, missed = harmed+len(c.harmed), missed+c.missed
		lifespans := c.lifespans()
		c.neverTwo(lifespans)
		for token, last := range lastMoments(lifespans) {
			end, given := a.proxy.endOf(grantOf{c.election, token})
			margin, name := end-last, c.harmed[token]
			if margin <= 0 {
				a.t.Errorf("%s: token %d (%s) lived for %v after its lease", c.election, token, name, -margin)
			}
			if given > 0 && given <= last {
				a.t.Errorf("%s: token %d (%s) lived for %v after its lease was given back", c.election, token, name, last-given)
			}
			if name != "" {
				margins[name] = append(margins[name], margin)
			}
		}
	}
	if missed > harmed {
		a.t.Errorf("%d leaders were harmed, and %d had no guard or no command any more when they were to be", harmed, missed)
	}
	for _, name := range slices.Sorted(maps.Keys(margins)) {
		m := margins[name]
		slices.Sort(m)
		a.t.Logf("%-36s %4d trials, gone before the end of the lease by %4d ms at least, %4d ms in half of them",
			name, len(m), m[0].Milliseconds(), m[len(m)/2].Milliseconds())
	}
}

// neverTwo checks that no command began before all of earlier tokens had stopped.
func (c *contest) neverTwo(lifespans []process.Lifespan) {
	slices.SortFunc(lifespans, func(x, y process.Lifespan) int { return int(x.Token - y.Token) })
	var before process.Lifespan // whose end is the last so far
	for _, l := range lifespans {
		if before.Token != 0 && l.Token != before.Token && l.First <= before.Last {
			c.t.Errorf("%s: token %d (%s) lived for %v beside token %d", c.election, before.Token, c.harmed[before.Token], before.Last-l.First, l.Token)
		}
		if l.Last > before.Last {
			before = l
		}
	}
}

// lastMoments returns when each token's commands ran last.
func lastMoments(lifespans []process.Lifespan) map[leadership.Token]time.Duration {
	last := map[leadership.Token]time.Duration{}
	for _, l := range lifespans {
		last[l.Token] = max(last[l.Token], l.Last)
	}
	return last
}
