package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"

	"regent/leadership"
)

// The shortest leases. etcd grants none under 1.5 × its election timeout, in whole seconds; see etcdserver.NewServer.
const (
	regentLeast = leadership.MinLeaseDuration
	etcdLeast   = 2 * time.Second
)

func (b *bench) death() *contest {
	die := func(g guild) race {
		return func(ctx context.Context, n int) ([]Sample, error) { return b.deaths(ctx, g, n) }
	}
	return &contest{
		Contest: Contest{
			ID: "death", Title: "Takeover when the leader is killed", Of: "elections", Kind: Delays,
			About: fmt.Sprintf("A process leads some elections, whose leases it renews at different times, by the system's client; it is killed (SIGKILL) at "+
				"a moment of chance. A sample is from the kill to when the one who waits is told that it leads. etcd grants no lease under "+
				"1.5 × its election timeout (1 s by default) in whole seconds, that is %v, and looks for leases that are over twice a second; "+
				"Regent grants %v and more.", etcdLeast, regentLeast),
			Entrants: []Entrant{
				{fmt.Sprintf("etcd, %v", etcdLeast), "a session with that TTL; `Campaign`"},
				{fmt.Sprintf("Regent, %v", etcdLeast), "`Campaign` of leadership/client; a waiting `:acquire`"},
				{fmt.Sprintf("Regent, %v", regentLeast), "the same with the shortest lease of all"},
			},
			Pairs: []Pair{
				{1, 0, Median, Goal{}},
				{1, 0, Last, Goal{Size: b.Orphans, Most: ms(etcdLeast) + grace}},
				{2, 0, Median, Goal{}},
				{2, 0, Last, Goal{Size: b.Orphans, Most: ms(regentLeast) + grace}},
			},
		},
		sizes: []int{b.Orphans}, aspects: whole, rounds: b.Deaths, long: true,
		races: []race{die(b.etcd.guild(etcdLeast)), die(b.regent.guild(etcdLeast)), die(b.regent.guild(regentLeast))},
	}
}

// grace is by how many milliseconds a takeover may come after the end of a lease.
const grace = 500

// guild makes candidates for elections, and says how to reach the system.
type guild struct {
	Post
	candidate func(e string) (contender, func(), error)
}

// Post is what a process that leads has to know.
type Post struct {
	System    string
	Address   string
	Lease     time.Duration
	Elections []string
}

// postVariable holds the Post of a process that is to lead.
const postVariable = "BENCH_POST"

func (s *regent) guild(lease time.Duration) guild {
	return guild{Post{System: "regent", Address: s.address, Lease: lease}, func(e string) (contender, func(), error) {
		a, err := s.newAgent("heir", lease)
		if err != nil {
			return nil, nil, err
		}
		return &regentContender{agent: a, election: leadership.Election(e)}, a.wire.CloseIdleConnections, nil
	}}
}

func (s *etcd) guild(lease time.Duration) guild {
	return guild{Post{System: "etcd", Address: s.address, Lease: lease}, func(e string) (contender, func(), error) {
		session, err := s.session(aLongTime)
		if err != nil {
			return nil, nil, err
		}
		return &etcdContender{concurrency.NewElection(session, e), "heir"}, func() { session.Close(); session.Client().Close() }, nil
	}}
}

// deaths kills one process that leads n elections.
func (b *bench) deaths(ctx context.Context, g guild, n int) ([]Sample, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b.killed++
	for i := range n {
		g.Elections = append(g.Elections, fmt.Sprintf("crown-%d-%d", b.killed, i))
	}
	post, err := json.Marshal(g.Post)
	if err != nil {
		return nil, err
	}
	leader, err := serve(ctx, "leader", exec.Command(self), postVariable+"="+string(post))
	if err != nil {
		return nil, err
	}
	defer leader.stop()
	told, errs := make([]time.Time, n), make([]error, n)
	var running sync.WaitGroup
	for i, e := range g.Elections {
		running.Go(func() {
			heir, leave, err := g.candidate(e)
			if err != nil {
				errs[i] = err
				return
			}
			defer leave()
			errs[i] = heir.campaign(ctx)
			told[i] = time.Now()
			if errs[i] == nil {
				errs[i] = heir.resign(ctx)
			}
		})
	}
	<-time.After(g.Lease + rand.N(g.Lease)) // all heirs stand in line
	killed := time.Now()
	leader.stop()
	running.Wait()
	var took []time.Duration
	for _, at := range told {
		took = append(took, at.Sub(killed))
	}
	return []Sample{sampleOf(killed, took)}, firstOf(errs)
}

// lead leads all elections of the post, until it is killed. Their renewals are spread over the time between two.
func lead(ctx context.Context, post string) error {
	var p Post
	if err := json.Unmarshal([]byte(post), &p); err != nil {
		return err
	}
	for _, e := range p.Elections {
		if err := p.take(ctx, e); err != nil {
			return err
		}
		<-time.After(p.Lease / 3 / time.Duration(len(p.Elections)))
	}
	slog.New(slog.NewJSONHandler(os.Stderr, nil)).Info(serving)
	io.Copy(io.Discard, os.Stdin)
	return nil
}

// take leads one, and keeps it.
func (p Post) take(ctx context.Context, e string) error {
	if p.System == "etcd" {
		session, err := (&etcd{server: &server{address: p.Address}}).session(p.Lease)
		if err != nil {
			return err
		}
		return concurrency.NewElection(session, e).Campaign(ctx, "leader")
	}
	a, err := (&regent{server: &server{address: p.Address}}).newAgent("leader", p.Lease)
	if err != nil {
		return err
	}
	_, err = a.Campaign(ctx, leadership.Election(e))
	return err
}
