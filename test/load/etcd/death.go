package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"

	"regent/leadership"
	"regent/test/load"
)

// The shortest leases. etcd grants none under 1.5 × its election timeout, in whole seconds; see
// etcdserver.NewServer.
const (
	regentLeast = leadership.MinLeaseDuration
	etcdLeast   = 2 * time.Second
)

func (b *bench) death() *contest {
	return &contest{
		Contest: Contest{
			ID: "death", Title: "Take-over when the leader is killed", Of: "elections", Kind: Delays, Other: etcdName,
			About: fmt.Sprintf("A process leads some elections, whose leases it renews at different times, by the system's client; it is killed (SIGKILL) at "+
				"a random moment. A sample is from the kill to when the waiting candidate learns that it leads. etcd grants no lease under "+
				"1.5 × its election timeout (1 s by default) in whole seconds, that is %v, and looks for leases that are over twice a second; "+
				"Regent grants %v and more.", etcdLeast, regentLeast),
			Entrants: []Entrant{
				{fmt.Sprintf("etcd, %v", etcdLeast), "a session with that TTL; `Campaign`"},
				{fmt.Sprintf("Regent, %v", etcdLeast), "`Campaign` of leadership/client; a waiting `:acquire`"},
				{fmt.Sprintf("Regent, %v", regentLeast), "the same with the shortest lease of all"},
			},
			Pairs: []Pair{{1, 0, Median, "", nil}, {1, 0, Last, "", nil}, {2, 0, Median, "", nil}, {2, 0, Last, "", nil}},
		},
		sizes: []int{b.Orphaned}, aspects: whole, rounds: b.Deaths, long: true,
		races: []race{
			b.deaths(leaderSpec{Etcd: true, Address: b.etcd.address, Lease: etcdLeast}, b.etcd.candidate),
			b.deaths(leaderSpec{Address: b.regent.address, Lease: etcdLeast}, b.regent.candidate),
			b.deaths(leaderSpec{Address: b.regent.address, Lease: regentLeast}, b.regent.candidate),
		},
	}
}

// leaderSpec is what a process that leads has to know.
type leaderSpec struct {
	Etcd      bool // else Regent
	Address   string
	Lease     time.Duration
	Elections []string
}

// leaderVariable holds the leaderSpec of a process that is to lead.
const leaderVariable = "BENCH_LEADER"

// deaths is a race that kills one process, which leads all elections.
func (b *bench) deaths(spec leaderSpec, create func(id, election string) (candidate, error)) race {
	return func(ctx context.Context, n int) ([]Sample, error) {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		b.killed++
		spec.Elections = nil
		for i := range n {
			spec.Elections = append(spec.Elections, fmt.Sprintf("orphaned-%d-%d", b.killed, i))
		}
		text, err := json.Marshal(spec)
		if err != nil {
			return nil, err
		}
		leader, err := serve(ctx, "leader", exec.Command(self), leaderVariable+"="+string(text))
		if err != nil {
			return nil, err
		}
		var killed time.Time
		dead := make(chan struct{})
		time.AfterFunc(spec.Lease+rand.N(spec.Lease), func() { // by then all candidates wait
			killed = time.Now()
			leader.stop()
			close(dead)
		})
		told := make([]time.Time, n)
		err = load.Each(n, n, func(i int) error {
			next, err := create("next", spec.Elections[i])
			if err != nil {
				return err
			}
			defer next.close()
			if err := next.campaign(ctx); err != nil {
				return err
			}
			told[i] = time.Now()
			return next.resign(ctx)
		})
		<-dead
		var took []time.Duration
		for _, at := range told {
			took = append(took, at.Sub(killed))
		}
		return []Sample{sampleOf(killed, took)}, err
	}
}

// lead leads all elections of the spec until it is killed. Their renewals are spread over the time
// between two.
func lead(ctx context.Context, text string) error {
	var spec leaderSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return err
	}
	for _, e := range spec.Elections {
		if err := spec.take(ctx, e); err != nil {
			return err
		}
		<-time.After(spec.Lease / 3 / time.Duration(len(spec.Elections)))
	}
	stay()
	return nil
}

// take leads one, and keeps it.
func (spec leaderSpec) take(ctx context.Context, e string) error {
	server := &server{address: spec.Address}
	if spec.Etcd {
		session, err := etcdAt(server).session(spec.Lease)
		if err != nil {
			return err
		}
		return concurrency.NewElection(session, e).Campaign(ctx, "leader")
	}
	a, err := regentAt(server).newAgent("leader", spec.Lease)
	if err != nil {
		return err
	}
	_, err = a.Campaign(ctx, leadership.Election(e))
	return err
}
