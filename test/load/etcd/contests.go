package main

import (
	"fmt"
	"strings"

	etcdclient "go.etcd.io/etcd/client/v3"
)

// contests returns the contests in the order of the report.
func (b *bench) contests() []*contest {
	e, r := b.etcd, b.regent
	const renewal, reader = "`:renew`; durable before it is answered", "Each connection asks who leads an election; "
	return []*contest{
		b.throughput("Grant and release", "Each connection acquires an election that no one else wants and releases it, again and again.", []Entrant{
			{"etcd", "`Campaign` and `Resign` of clientv3/concurrency in a session that is there already: a Txn, a linearizable Get, a Txn; of these 2 are fsynced"},
			{"Regent", "`:acquire` with a new key and `:release`; both are durable before they are answered, and write an event each"},
		}, beside("grant+release / etcd campaign+resign", 3, 1.3), e.cycles, r.cycles),
		b.throughput("Durable renewals, one by one", "Each connection renews a lease of its own. "+
			"What waits while a commit is under way goes into the next, all in one: a group commit, in both.", []Entrant{
			{"etcd", "a Put of some 10 bytes to a key of its own: the smallest transaction that is fsynced"},
			{"Regent", renewal},
		}, beside("durable renewal / etcd synced put", 1.5, 1), e.puts, r.renewals),
		b.batch(),
		b.throughput("Strong reads", reader+"the answer includes every change made before the question.", []Entrant{
			{"etcd", "a linearizable Get of one key"},
			{"Regent", "`GET …?consistency=strong`"},
		}, beside("strong read / etcd linearizable get", 1.3, 1.1), e.reads(), r.reads(true)),
		b.throughput("Cached reads", reader+"the answer may be a little old.", []Entrant{
			{"etcd", "a serializable Get of one key; nothing bounds its age"},
			{"Regent", "`GET …`; at most 5 s old, and it says how old it may be"},
		}, beside("cached read / etcd serializable get", 1.5, 1.2), e.reads(etcdclient.WithSerializable()), r.reads(false)),
		b.handover(),
	}
}

// beside compares Regent, the second of two entrants, with etcd: by the rate, which has these goals
// at 64 connections and at one, and by the p99, which should be no longer.
func beside(name string, many, one float64) []Pair {
	what, _, _ := strings.Cut(name, " / ")
	return []Pair{{1, 0, Rate, name, at64and1(many, one)}, {1, 0, Late, "p99 of " + what, at64and1(1, 1)}}
}

// throughput returns a contest of how often something can be done in a second. The last entrant is
// Regent, all others are etcd.
func (b *bench) throughput(title, about string, entrants []Entrant, pairs []Pair, ready ...prepare) *contest {
	c := &contest{Contest: Contest{Title: title, About: about, Of: "connections", Kind: Rates, Entrants: entrants, Pairs: pairs}}
	for i, p := range ready {
		on := b.etcd.server
		if i == len(ready)-1 {
			on = b.regent.server
		}
		c.races = append(c.races, b.flat(on, p))
	}
	return c
}

func (b *bench) batch() *contest {
	about := fmt.Sprintf("Each connection keeps %d leases. The rates count leases; the delays are those of one operation, however many leases it has. etcd writes nothing "+
		"for a keep-alive: after a crash of the server its leases begin anew. Regent's renewals are on the disk.", batchSize)
	return b.throughput("Renewals of 100 leases", about, []Entrant{
		{"etcd, KeepAliveOnce", "clientv3's call for one keep-alive, which opens a stream for it; not durable"},
		{"etcd, stream of 100", "100 keep-alives are sent at once over one stream that is open, and 100 answers awaited; not durable"},
		{"Regent", "`:batchRenew` of 100 leases in one call; durable before it is answered"},
	}, []Pair{
		{2, 0, Rate, "leases in batches of 100 / etcd KeepAliveOnce", at64and1(10, 10)},
		{2, 1, Late, "p99 of a batch of 100 / of 100 keep-alives in one stream", at64and1(1, 1)},
	}, b.etcd.keepAlives, b.etcd.stream, b.regent.batches)
}
