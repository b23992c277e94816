package test

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/test/machine"
	"regent/test/process"
)

var trials = flag.Int("trials", 0, "how often a regent run is harmed; 0 for 128, or 16 with -short")

const (
	contests = 8
	// contestLease is three times the shortest: a tenth of it is what a busy machine may take to
	// run the process that ends a command.
	contestLease = 3 * time.Second
)

var lifespan = process.Program{Package: "regent/test/process/lifespan"}

// Two runs contend for each of several elections, and the processes that they need are killed or
// stopped in turn. Each time the command must end, with all processes that it started, before the
// next one begins: at once when the lease ends.
func TestACommandIsGoneBeforeItsLeaseEnds(t *testing.T) {
	machine.Share(t)
	server := inFile(t).serve(t)
	rounds := max(cmp.Or(*trials, machine.Size(16, 128))/contests, 1)
	var all sync.WaitGroup
	for i := range contests {
		c := newContest(t, server.URL, i)
		all.Go(func() {
			var token leadership.Token
			for round := range rounds {
				token, _ = c.leader(token)
				<-time.After(rand.N(contestLease)) // at any moment between two renewals
				var leader int
				if token, leader = c.leader(token - 1); t.Failed() {
					return
				}
				harm := harms[(round+i)%len(harms)]
				c.harmed[token] = harm.name
				heal := harm.do(c, leader, token)
				c.leader(token)
				heal()
			}
		})
	}
	all.Wait()
}

// harms are what happens to a leader. They return what ends the harm, once another one leads.
var harms = []struct {
	name string
	do   func(*contest, int, leadership.Token) (heal func())
}{
	{"wrapper killed", func(c *contest, i int, _ leadership.Token) func() { return c.kill(i) }},
	{"wrapper stopped", func(c *contest, i int, _ leadership.Token) func() { return c.pause(i) }},
	{"guard killed, then wrapper stopped", func(c *contest, i int, token leadership.Token) func() {
		c.harmGuard(i, token, syscall.SIGKILL)
		return c.pause(i)
	}},
	{"guard stopped, then wrapper killed", func(c *contest, i int, token leadership.Token) func() {
		end := c.harmGuard(i, token, syscall.SIGSTOP)
		start := c.kill(i)
		return func() { end(); start() }
	}},
}

// contest is two runs that want to lead the same election.
type contest struct {
	t        testing.TB
	server   string
	election leadership.Election
	dir      string // where the commands write
	command  []string
	runs     [2]*process.Process
	harmed   map[leadership.Token]string
}

func newContest(t testing.TB, server string, i int) *contest {
	t.Helper()
	c := &contest{t: t, server: server, election: electionName(i), dir: t.TempDir(), harmed: map[leadership.Token]string{}}
	c.command = append([]string{lifespan.Path(t), c.dir}, [][]string{{}, {"stubborn"}, {"family"}}[i%3]...)
	t.Cleanup(c.neverTwo)
	for i := range c.runs {
		c.start(i)
	}
	return c
}

// start starts one of the two.
func (c *contest) start(i int) {
	args := append([]string{"run", string(c.election), "--candidate", fmt.Sprintf("agent-%d", i), "--lease", contestLease.String(), "--restart", "--"}, c.command...)
	cmd := invoke(c.t, process.Regent, []string{"REGENT_SERVER=" + c.server}, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // else the end of the process that started these tests may resume a stopped one
	c.runs[i] = process.Start(c.t, cmd)
}

// kill kills a run. It has ended for these tests when all that write to its output have: also a
// guard that is stopped.
func (c *contest) kill(i int) (heal func()) {
	killed := c.runs[i]
	killed.Process.Kill()
	return func() {
		<-killed.Gone
		c.start(i)
	}
}

func (c *contest) pause(i int) (heal func()) {
	c.runs[i].Process.Signal(syscall.SIGSTOP)
	return func() { c.runs[i].Process.Signal(syscall.SIGCONT) }
}

// harmGuard signals the guard of a run, and waits until another one is there or another command
// leads. It returns what ends a guard that is left stopped.
func (c *contest) harmGuard(i int, token leadership.Token, s syscall.Signal) (end func()) {
	guard := 0
	another := func() bool {
		for pid, state := range process.Children(c.runs[i].Process.Pid) {
			if pid != guard && state != "T" && process.IsGuard(pid) {
				guard = pid
				return true
			}
		}
		return slices.ContainsFunc(c.lifespans(), func(l process.Lifespan) bool { return l.Token > token })
	}
	machine.Eventually(c.t, "the run has a guard", another)
	first := guard
	if first != 0 {
		syscall.Kill(first, s)
		machine.Eventually(c.t, "the run has another guard", another)
	}
	return func() {
		if first != 0 && process.IsGuard(first) {
			syscall.Kill(first, syscall.SIGKILL)
		}
	}
}

// leader waits until a leader's command runs whose token is above that, with all its family, and
// returns the token and which of the two it is.
func (c *contest) leader(above leadership.Token) (token leadership.Token, i int) {
	family := 1
	if slices.Contains(c.command, "family") {
		family = 3
	}
	machine.Eventually(c.t, fmt.Sprintf("%s is led with a token above %d", c.election, above), func() bool {
		newest := map[leadership.Token][]process.Lifespan{}
		for _, l := range c.lifespans() {
			newest[l.Token], token = append(newest[l.Token], l), max(token, l.Token)
		}
		for _, l := range newest[token] {
			i = slices.IndexFunc(c.runs[:], func(p *process.Process) bool { return p.Process.Pid == l.Parent })
			if i >= 0 && token > above && len(newest[token]) == family && boottime.Now()-l.Last < 100*time.Millisecond {
				return true
			}
		}
		return false
	})
	return token, i
}

func (c *contest) lifespans() []process.Lifespan {
	found, err := process.Lifespans(c.dir)
	if err != nil && !os.IsNotExist(err) {
		c.t.Error(err)
	}
	return found
}

// neverTwo checks that no command began before all of earlier tokens had stopped.
func (c *contest) neverTwo() {
	lifespans := c.lifespans()
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
