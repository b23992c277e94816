package test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/wire"
	"regent/test/load"
	"regent/test/machine"
)

// many is how many elections the test of many has; the run beside it has a tenth.
var (
	many = flag.Int("elections", fewElections, "how many elections there are in the test of many")
	work = flag.Duration("work", 500*time.Millisecond, "how long the leaders of that test work")
)

const fewElections = 200

// TestManyElections measures what elections cost an instance, beside a tenth of them. It fails if
// one is not listed, or if kill -9 loses a token that was granted.
func TestManyElections(t *testing.T) {
	t.Parallel()
	show := func(t *testing.T, in func() place, instances, n int) {
		few := newManyRun(t, in(), instances, n/10)
		all := newManyRun(t, in(), instances, n)
		t.Log(table(few, all))
	}
	t.Run("file", func(t *testing.T) { show(t, func() place { return inFile(t) }, 1, *many) })
	if *many > fewElections {
		t.Run("firestore, two instances", func(t *testing.T) { // whose emulator is slow
			show(t, func() place { return inFirestore(t).announcing(newTopic(t)) }, 2, *many/5)
		})
	}
}

// manyRun is a store with many elections: of 20 in 20, one is led by an agent with the Go SDK, and
// of 50 in 50, one has a candidate that waits.
type manyRun struct {
	*testing.T
	in      place
	servers []*server
	name    leadership.Election // with which those of this run begin
	seen    int
	crowds  []*load.Crowd
	found   []figure
}

// figure is a row of the report.
type figure struct {
	name  string
	value float64
	unit  string
}

// newManyRun runs with n elections.
func newManyRun(t *testing.T, in place, instances, n int) *manyRun {
	r := &manyRun{T: t, in: in.with("--stream-limit", "1h"), name: leadership.Election(fmt.Sprintf("of-%d", n)), seen: n}
	for range instances {
		r.servers = append(r.servers, live(t, r.in.serve(t)))
	}
	r.run()
	return r
}

func (r *manyRun) note(name string, value float64, unit string) {
	r.found = append(r.found, figure{name, value, unit})
}

func (r *manyRun) memory() (bytes int64) {
	for _, s := range r.servers {
		bytes += resident(r, s.cmd.Process.Pid)
	}
	return bytes
}

// grow notes what do adds to the memory of an instance, for each of n.
func (r *manyRun) grow(what string, n int, do func()) {
	before := r.memory()
	do()
	r.note("memory of an instance for "+what, float64(r.memory()-before)/1024/float64(n*len(r.servers)), "KiB")
}

func (r *manyRun) run() {
	const processes = 20
	leaders, waiting := max(r.seen/20, processes), max(r.seen/50, processes)
	r.grow("each election that was led once", r.seen, r.leadEach)
	r.grow("each that is led by an SDK", leaders, func() { r.gather(load.Leaders, processes, leaders) })
	r.grow("each candidate that waits by an SDK", waiting, func() { r.gather(load.Candidates, processes, waiting) })
	r.work()
	r.look(leaders)
	for _, c := range r.crowds {
		c.Leave()
	}
	r.restart()
	for _, s := range r.servers {
		s.kill()
	}
}

// once leads an election, and releases it.
func (r *manyRun) once(ctx context.Context, i int, e leadership.Election) (leadership.Token, error) {
	c, key := r.servers[i%len(r.servers)].client, leadership.NewKey()
	g, err := c.Acquire(ctx, leadership.AcquireRequest{Election: e, CandidateID: "ann", Key: &key, LeaseDuration: time.Hour})
	if err == nil {
		_, err = c.Do(ctx, leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: e, CandidateID: "ann", Key: key, Token: g.Token}})
	}
	return g.Token, err
}

func (r *manyRun) leadEach() {
	begin, took := time.Now(), make([]time.Duration, r.seen)
	err := load.Each(r.seen, 64, func(i int) error {
		begin := time.Now()
		_, err := r.once(r.Context(), i, r.nth(i))
		took[i] = time.Since(begin)
		return err
	})
	require.NoError(r, err)
	r.note("a grant and its release, of 64 at a time", per(time.Since(begin), r.seen), "µs")
	r.note("… the longest, with every checkpoint", per(slices.Max(took), 1)/1000, "ms")
}

func (r *manyRun) nth(i int) leadership.Election {
	return leadership.Election(fmt.Sprintf("%s-once-%06d", r.name, i))
}

func per(d time.Duration, n int) float64 { return float64(d.Microseconds()) / float64(n) }

// gather starts n agents in so many processes, and waits until all are there.
func (r *manyRun) gather(kind load.Kind, processes, n int) {
	var addresses []string
	for _, s := range r.servers {
		addresses = append(addresses, strings.TrimPrefix(s.URL, "http://"))
	}
	var started []*load.Crowd
	for p := range processes {
		first, beyond := p*n/processes, (p+1)*n/processes
		c, err := load.Start(load.Config{Kind: kind, Size: beyond - first, First: first, Servers: addresses, Election: r.name + "-led", Lease: leaseOfMany})
		require.NoError(r, err)
		r.Cleanup(c.Leave)
		started = append(started, c)
	}
	for _, c := range started {
		for report := range c.Reports {
			if report.Failure != "" {
				r.Fatal(report.Failure)
			}
			if report.Present {
				break
			}
		}
	}
	r.crowds = append(r.crowds, started...)
}

// leaseOfMany is that of the SDK's leaders: each renews every second, ten times as often as by
// default. So six minutes have the renewals of an hour.
const leaseOfMany = 3 * time.Second

// work lets the leaders work, while another agent leads and releases all the time. Its longest call
// is the longest pause of the service.
func (r *manyRun) work() {
	ctx, cancel := context.WithTimeout(r.Context(), *work)
	defer cancel()
	var took []time.Duration
	for i := 0; ctx.Err() == nil; i++ {
		begin := time.Now()
		if _, err := r.once(r.Context(), i, r.name+"-probe"); err != nil {
			r.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	r.note("a grant and its release while all work, the half of them", per(quantile(took, 0.5), 1)/1000, "ms")
	r.note("… 99 of 100", per(quantile(took, 0.99), 1)/1000, "ms")
	r.note("… the longest", per(quantile(took, 1), 1)/1000, "ms")
	lost := 0
	for state, n := range states(r.crowds...) {
		if strings.Contains(state, "has lost") {
			lost += n
		}
	}
	r.note("leases of the SDKs that ran out", float64(lost), "leases")
}

// look lists all elections, and lets each instance do what is overdue.
func (r *manyRun) look(leaders int) {
	begin, n := time.Now(), 0
	for page := (leadership.Page{}); n == 0 || page.Next != ""; {
		request := leadership.ListRequest{Prefix: string(r.name), After: page.Next, Limit: leadership.MaxPageSize}
		var err error
		if page, err = r.servers[0].client.List(r.Context(), request); err != nil {
			r.Fatal(err, r.servers[0].log)
		}
		n += len(page.Leases)
	}
	if want := r.seen + leaders + 1; n != want {
		r.Errorf("%d elections are listed, and there are %d", n, want)
	}
	r.note("list, for each election", per(time.Since(begin), n), "µs")
	machine.Eventually(r, "the tick is answered", func() bool {
		begin = time.Now()
		reply, err := plain.Post(r.servers[0].URL+wire.PathTick, wire.ContentType, nil)
		require.NoError(r, err)
		reply.Body.Close()
		return reply.StatusCode == http.StatusOK
	})
	r.note("tick", per(time.Since(begin), 1)/1000, "ms")
}

// restart kills an instance, and starts it again: it has all that it has answered.
func (r *manyRun) restart() {
	r.servers[0].kill()
	begin := time.Now()
	r.servers[0] = live(r, r.in.serve(r))
	r.note("start after kill -9", per(time.Since(begin), 1)/1000, "ms")
	r.note("memory after it", float64(resident(r, r.servers[0].cmd.Process.Pid))/1024/1024, "MiB")
	var mu sync.Mutex
	var wrong []string
	looked := min(100, r.seen)
	err := load.Each(looked, 16, func(i int) error {
		e := r.nth(i * (r.seen / looked))
		token, err := r.once(r.Context(), 0, e)
		if err == nil && token != 2 {
			mu.Lock()
			defer mu.Unlock()
			wrong = append(wrong, fmt.Sprintf("%s has fencing token %d", e, token))
		}
		return err
	})
	if err != nil || len(wrong) > 0 {
		r.Fatalf("after the kill: %v, %v", err, wrong)
	}
}

// table has a row for each figure, with its value in both runs.
func table(few, all *manyRun) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n| | %d elections | %d |\n|---|---:|---:|\n", few.seen, all.seen)
	for i, f := range few.found {
		fmt.Fprintf(&b, "| %s, %s | %.1f | %.1f |\n", f.name, f.unit, f.value, all.found[i].value)
	}
	return b.String()
}
