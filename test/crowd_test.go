package test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/test/load"
	"regent/test/machine"
	"regent/test/proxy"
)

// crowded is how many candidates wait, and how many watch, in the tests of crowds. With more than
// the default the tests also last longer.
var crowded = flag.Int("crowd", few, "how many agents wait, and how many watch, in the tests of crowds")

const few = 300

// planner is the election that crowds want to lead.
const planner leadership.Election = "planner"

// Many candidates wait, and as many watch. While nothing happens the store is not called; a change
// of leader costs a transaction for each instance, and every watcher hears of it.
func TestACrowdCostsTheStoreNothingWhileItWaits(t *testing.T) {
	machine.Share(t)
	show := func(t *testing.T, begin func(testing.TB) crowdServers) {
		idle, releases := 2*time.Second, machine.Size(2, 5)
		if *crowded == few {
			t.Parallel()
		} else {
			idle, releases = 65*time.Second, 20 // in the first all have to ask again
		}
		p := newCrowdRun(t, begin(t), *crowded)
		p.idle(idle)
		p.releases(releases)
		t.Log(p)
	}
	t.Run("file", func(t *testing.T) { show(t, serveInProcess) })
	t.Run("firestore, two servers", func(t *testing.T) { show(t, twoInFirestore) })
	if *crowded > few {
		t.Run("file, a process", func(t *testing.T) { show(t, oneInFile) }) // whose memory is that of the real thing
	}
}

// crowdRun is a crowd that waits and watches, and the figures of the test.
type crowdRun struct {
	crowdServers
	tb                testing.TB
	waiters, watchers *load.Crowd
	size              map[load.Kind]int
	leader            leadership.LeaseRequest
	text              strings.Builder
}

// newCrowdRun lets ann lead, and the crowd come: size of each kind, or as many as there can be
// connections here.
func newCrowdRun(tb testing.TB, on crowdServers, size int) *crowdRun {
	tb.Helper()
	const others = 200 // files that are not connections of the crowd
	waiters := min(size, files(tb)-others)
	watchers := min(size, len(on.servers)*(files(tb)-others)-waiters, waiters)
	p := &crowdRun{crowdServers: on, tb: tb, size: map[load.Kind]int{load.Waiters: waiters, load.Watchers: watchers}}
	_, err := p.clients[0].Do(tb.Context(), leadership.Configure{
		Election: planner, Config: leadership.Config{LeaseDuration: time.Hour}, // of all that come after ann
	})
	require.NoError(tb, err)
	key := leadership.NewKey()
	g, err := p.clients[0].Acquire(tb.Context(), leadership.AcquireRequest{Election: planner, CandidateID: "ann", Key: &key, LeaseDuration: time.Hour})
	require.NoError(tb, err)
	p.leader = leadership.LeaseRequest{Election: planner, CandidateID: "ann", Key: key, Token: g.Token}
	p.waiters = p.gather(load.Waiters, "127.0.0.2")
	p.renew()
	p.watchers = p.gather(load.Watchers, "127.0.0.3")
	p.renew()
	p.settle()
	return p
}

func (p *crowdRun) renew() {
	p.tb.Helper()
	if _, err := p.clients[0].Renew(p.tb.Context(), p.leader); err != nil {
		p.tb.Fatal(err)
	}
}

func (p *crowdRun) note(format string, args ...any) { fmt.Fprintf(&p.text, "\n"+format, args...) }

// String returns all figures.
func (p *crowdRun) String() string { return p.text.String() }

// gather lets one half of the crowd come.
func (p *crowdRun) gather(kind load.Kind, from string) *load.Crowd {
	p.tb.Helper()
	before, begin, n := p.memory(), time.Now(), p.size[kind]
	c, err := load.Start(load.Config{Kind: kind, Size: n, Servers: p.servers, Election: planner, From: from})
	require.NoError(p.tb, err)
	p.tb.Cleanup(c.Leave)
	p.await(c, "all to be there", func(r load.Report) bool { return r.Present })
	took := time.Since(begin)
	if *crowded > few {
		<-time.After(time.Second) // the figures are of those that stand in line
	}
	p.note("%d %s: there after %v, each with %.1f KiB resident", n, kind, took.Round(time.Millisecond), float64(p.memory()-before)/float64(n)/1024)
	return c
}

// await reads reports until one is as wanted, which what says in words.
func (p *crowdRun) await(c *load.Crowd, what string, want func(load.Report) bool) load.Report {
	p.tb.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		select {
		case r, ok := <-c.Reports:
			if !ok || r.Failure != "" {
				p.tb.Fatalf("the crowd: %s", r.Failure)
			}
			if want(r) {
				return r
			}
		case <-deadline:
			p.tb.Fatalf("waits for %s in vain. The agents:\n%v\nThe servers:\n%s\nSo far:%v", what, states(p.waiters, p.watchers, c), p.logs(), p)
		}
	}
}

// states is how many agents of the crowds, of those that there are, are in which state.
func states(crowds ...*load.Crowd) map[string]int {
	all := map[string]int{}
	for _, c := range crowds {
		if c == nil {
			continue
		}
		c.Ask()
		for late := time.After(10 * time.Second); ; {
			select {
			case r, ok := <-c.Reports:
				for state, n := range r.States {
					all[state] += n
				}
				if ok && r.States == nil {
					continue
				}
			case <-late:
			}
			break
		}
	}
	return all
}

// settle waits until all calls of the store after a change are made, and returns the calls since
// the last time.
func (p *crowdRun) settle() proxy.Calls { return p.settleFor(300 * time.Millisecond) }

func (p *crowdRun) settleFor(d time.Duration) (all proxy.Calls) {
	machine.Eventually(p.tb, "the store is not called", func() bool {
		<-time.After(d)
		calls := p.calls()
		all = all.Plus(calls)
		return p.quiet(calls, d)
	})
	return all
}

// quiet reports whether the instances did no more in that time than to look at the outbox: four
// times a minute each.
func (p *crowdRun) quiet(calls proxy.Calls, d time.Duration) bool {
	looks := calls["RunQuery"] + calls["ExecuteStreamingSql"]
	return calls.Total() == looks && looks <= len(p.servers)*(int(d/time.Second)/10+1)
}

// idle waits.
func (p *crowdRun) idle(d time.Duration) {
	p.tb.Helper()
	<-time.After(d)
	calls := p.calls()
	p.note("%v in which nothing happens: %v", d, calls)
	if !p.quiet(calls, d) {
		p.tb.Errorf("in %v in which nothing happens the store is called: %v", d, calls)
	}
}

// allow fails if so many releases cost more than they may: a transaction of the leader, and one of
// each instance, of at most two reads and a commit. On a busy machine they collide, and are carried
// out anew, some times; test/load/counts counts exactly what one costs. That is far below one for
// each who waits.
func (p *crowdRun) allow(n int, calls proxy.Calls) {
	p.tb.Helper()
	const times = 4
	most := n * (1 + len(p.servers)) * times
	if max(calls["Update"], calls["Commit"]) > most || calls["BatchGetDocuments"] > 2*most {
		p.tb.Errorf("%d changes cost %v; so far:%v", n, calls, p)
	}
}

// releases lets the leader release, so many times.
func (p *crowdRun) releases(n int) {
	p.tb.Helper()
	var next, heardFirst, heardLast []time.Duration
	var calls proxy.Calls
	for range n {
		if _, err := p.clients[0].Do(p.tb.Context(), leadership.Release{LeaseRequest: p.leader}); err != nil {
			p.tb.Fatal(err)
		}
		released := boottime.Now()
		grant, heard := p.takeover()
		next, heardFirst, heardLast = append(next, grant.At-released), append(heardFirst, heard.First-released), append(heardLast, heard.Last-released)
		calls = calls.Plus(p.settle())
	}
	p.allow(n, calls)
	p.note("%d releases: the next leads after %s, the first of the watchers has heard of it after %s, and the last after %s; %v",
		n, distribution(next), distribution(heardFirst), distribution(heardLast), calls)
}

// takeover waits until another leads, and all have heard of it.
func (p *crowdRun) takeover() (*load.Grant, *load.Heard) {
	p.tb.Helper()
	grant := p.await(p.waiters, "a waiter to lead", func(r load.Report) bool { return r.Grant != nil }).Grant
	heard := p.await(p.watchers, fmt.Sprintf("all watchers to have revision %d", grant.Revision), func(r load.Report) bool { return r.Heard != nil && r.Heard.Revision == grant.Revision }).Heard
	key, err := leadership.ParseKey(grant.Key)
	require.NoError(p.tb, err)
	p.leader = leadership.LeaseRequest{Election: planner, CandidateID: grant.CandidateID, Key: key, Token: grant.Token}
	return grant, heard
}

func distribution(all []time.Duration) string {
	var parts []string
	for _, q := range []float64{0.5, 0.9, 0.99, 1} {
		parts = append(parts, fmt.Sprintf("%.1f", float64(quantile(all, q))/float64(time.Millisecond)))
	}
	return strings.Join(parts, " ") + " ms"
}

func quantile(all []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max(int(float64(len(sorted))*q+0.999999)-1, 0)]
}
