package kubernetes

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"regent/test/checker"
)

var (
	hours = flag.Int("hours", 0, "how many hours are simulated, each with the next seed; 0 for 1 with -short, and 12 without")
	first = flag.Uint64("seed", 1, "the seed of the first hour")
)

// A seed says what goes wrong. Which of two goroutines is first at one instant it does not say.
func TestElectorsOfClientGoNeverLeadTogetherInAnHourOfFaults(t *testing.T) {
	t.Parallel()
	n := *hours
	if n == 0 {
		if n = 12; testing.Short() {
			n = 1
		}
	}
	for seed := *first; seed < *first+uint64(n); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { hour(t, seed) }) })
	}
}

// hour simulates 55 minutes of faults and five without.
func hour(t *testing.T, seed uint64) {
	f, c := newFleet(t), newChance(seed)
	ctx, cancel := context.WithCancel(t.Context())
	var electors []*elector
	var all sync.WaitGroup
	for _, name := range []string{"ann", "bob", "eve"} {
		electors = append(electors, newElector(f, c, name))
	}
	faulty, heal := context.WithTimeout(ctx, 55*time.Minute)
	defer heal()
	for _, e := range electors {
		all.Go(func() { e.live(ctx, faulty) })
	}
	var faults sync.WaitGroup
	repeat := func(mean time.Duration, do func()) {
		faults.Go(func() {
			for sleep(faulty, c.about(mean)) {
				do()
			}
		})
	}
	for _, e := range electors {
		repeat(30*time.Second, func() { e.link.set(pick(c, weathers)); sleep(faulty, c.upTo(time.Minute)); e.link.set(calm) })
		repeat(3*time.Minute, func() { e.pause(faulty, c.about(10*time.Second)) })
		repeat(10*time.Minute, e.crash)
	}
	for n := range f.at {
		repeat(4*time.Minute, func() { f.end(n); sleep(faulty, c.about(10*time.Second)); f.begin(n) })
	}
	repeat(10*time.Minute, func() { f.delete(c) })
	faults.Wait()
	time.Sleep(3 * time.Minute) // what was under way arrives
	settled := len(f.history())
	time.Sleep(2 * time.Minute)
	for _, e := range electors {
		e.stop()
	}
	r := f.recording(electors)
	cancel()
	all.Wait()
	f.judge(r, electors, settled)
	if t.Failed() {
		f.keep()
	}
	time.Sleep(time.Minute) // what is under way arrives
}

// A client-go elector that takes a reply however late it comes believes in a lease that is over. No
// server can prevent that, and the token says it. It also shows that the checkers see two leaders.
func TestAnElectorThatTrustsALateReplyIsFenced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, c := newFleet(t), newChance(1)
		ann, bob := newElector(f, c, "ann"), newElector(f, c, "bob")
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		run := func(e *elector, transport http.RoundTripper, timeout time.Duration) {
			is := timing{lease: 6 * time.Second, renew: 3 * time.Second, retry: time.Second, timeout: timeout}
			all.Go(func() { e.process(ctx, never(), transport, is, false, 0) })
			time.Sleep(time.Second)
		}
		run(ann, late{ann.link}, 0)
		run(bob, bob.link, time.Second)
		time.Sleep(20 * time.Second)
		for token, want := range map[int]int{1: http.StatusConflict, 2: http.StatusOK} {
			r, _ := http.NewRequest(http.MethodPost, "http://127.0.0.1/v1/elections/"+string(election)+":checkToken", nil)
			r.Header.Set("Content-Type", "application/json")
			if o := f.serve(0, r, fmt.Appendf(nil, `{"fencingToken": %d}`, token)); o.err != nil || o.response.StatusCode != want {
				t.Errorf("token %d: %s, %v; want %d", token, o.body, o.err, want)
			}
		}
		time.Sleep(time.Minute)
		ann.stop()
		bob.stop()
		r := f.recording([]*elector{ann, bob})
		cancel()
		all.Wait()
		time.Sleep(time.Minute) // what is under way arrives
		if two := checker.ME2(r, 0).Violations; !slices.ContainsFunc(two, func(v checker.Violation) bool { return v.Kind == checker.TwoLeaders }) {
			t.Errorf("the checker does not see that two believe: %v", r.Beliefs)
		}
		for _, report := range []checker.Report{checker.ME1(r, 0), checker.FT(r)} {
			if err := report.Err(); err != nil {
				t.Error(err)
			}
		}
	})
}

// late is a transport on which the reply to a creation takes 20 seconds.
type late struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l late) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(r)
	if r.Method == http.MethodPost {
		time.Sleep(20 * time.Second)
	}
	return response, err
}

// never is a context that has ended.
func never() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// client-go reads the Lease anew before it releases it, and does not look at whose it is. An
// elector that is paused beyond the end of its lease finds its successor's.
func TestAnElectorThatWasPausedDoesNotReleaseItsSuccessorsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, c := newFleet(t), newChance(1)
		ann, bob := newElector(f, c, "ann"), newElector(f, c, "bob")
		ctx, cancel := context.WithCancel(t.Context())
		annsEnd, end := context.WithCancel(ctx)
		var all sync.WaitGroup
		all.Go(func() { ann.process(annsEnd, never(), ann.link, timings[1], true, 0) })
		time.Sleep(10 * time.Second)
		all.Go(func() { bob.process(ctx, never(), bob.link, timings[1], true, 0) })
		time.Sleep(10 * time.Second)
		ann.pause(ctx, time.Minute)
		end() // it leaves as soon as it goes on, and releases what it finds
		time.Sleep(time.Minute)
		f.mu.Lock()
		refused := f.refusals[http.StatusForbidden]
		f.mu.Unlock()
		if all := f.history(); refused != 1 || len(all) != 3 || all[2].LeaderID != "bob_0" {
			t.Errorf("%d releases were refused, and this has happened: %+v", refused, all)
		}
		cancel()
		all.Wait()
		time.Sleep(time.Minute) // what is under way arrives
	})
}

// delete deletes the Lease, as an operator may: its transitions go on.
func (f *fleet) delete(c *chance) {
	r, _ := http.NewRequest(http.MethodDelete, "http://127.0.0.1/apis/coordination.k8s.io/v1/namespaces/default/leases/jobs", nil)
	f.serve(pick(c, []int{0, 1}), r, nil)
}

// recording is what has happened.
func (f *fleet) recording(electors []*elector) checker.Recording {
	f.Helper()
	r := f.heard(electors)
	r.History = f.history()
	return r
}

// heard is what the electors have heard and believed. The work that goes on is not in it.
func (f *fleet) heard(electors []*elector) (r checker.Recording) {
	f.mu.Lock()
	r.Calls = f.calls
	f.mu.Unlock()
	for _, e := range electors {
		e.mu.Lock()
		r.Beliefs = append(r.Beliefs, e.beliefs...)
		e.mu.Unlock()
	}
	return r
}

// judge holds the hour to the promises. Its history had so many events when all was well again.
func (f *fleet) judge(r checker.Recording, electors []*elector, settled int) {
	last := r.History[len(r.History)-1]
	if len(r.History) != settled || last.LeaderID == "" {
		f.Errorf("leadership has changed in the two minutes in which all was well, or there is none: %+v", r.History[settled-1:])
	}
	terms := 0
	for _, e := range electors {
		terms += e.terms
	}
	var led time.Duration
	for _, b := range r.Beliefs {
		led += b.Until - b.From
	}
	var got strings.Builder
	for _, found := range []checker.Named{{Name: "ME1", Report: checker.ME1(r, 0)}, {Name: "ME2", Report: checker.ME2(r, 0)}, {Name: "FT", Report: checker.FT(r)}} {
		if err := found.Err(); err != nil {
			f.Errorf("%s: %v", found.Name, err)
		}
		fmt.Fprintf(&got, " %s looked at %d;", found.Name, found.Checked)
	}
	f.Logf("%d grants, %d terms, led for %v, %d writes, refused %v,%s", last.Token, terms, led.Round(time.Second), len(r.Calls), f.refusals, got.String())
	if last.Token < 10 || terms < 10 || led < 10*time.Minute || f.refusals[http.StatusConflict] == 0 {
		f.Error("too little has happened for this hour to prove anything")
	}
}

// keep writes all requests of an hour that failed to a file.
func (f *fleet) keep() {
	f.mu.Lock()
	defer f.mu.Unlock()
	file, err := os.CreateTemp("", "regent-kubernetes-hour-*.txt")
	if err == nil {
		_, err = file.WriteString(strings.Join(f.trace, "\n"))
		err = errors.Join(err, file.Close())
		f.Logf("all requests are in %s", file.Name())
	}
	if err != nil {
		f.Error(err)
	}
}
