package main

import (
	etcdclient "go.etcd.io/etcd/client/v3"
)

// contests are in the order of the report.
func (b *bench) contests() []*contest {
	return []*contest{b.cycle(), b.renew(), b.batch(), b.strong(), b.cached(), b.watch(), b.handover(), b.death(), b.held()}
}

// throughput is a contest of how often something can be done in a second.
func (b *bench) throughput(c Contest, races ...race) *contest {
	c.Of, c.Kind, c.Other = "connections", Rates, etcdName
	return &contest{Contest: c, sizes: b.Connections, aspects: whole, rounds: b.Rounds, races: races}
}

// Besides the client that agents use, which alone the goals are about, Regent is called with next
// to no work for the caller.
const (
	bareName = "Regent, bare HTTP"
	bareWhat = "the same, by requests that were written beforehand, on a plain TCP connection each; of an answer only the status and the length are read"
)

func (b *bench) cycle() *contest {
	e, r := b.etcd, b.regent
	return b.throughput(Contest{
		ID: "cycle", Title: "Grant and release",
		About: "Each connection acquires an election that no one else wants and releases it, again and again.",
		Entrants: []Entrant{
			{"etcd", "`Campaign` and `Resign` of clientv3/concurrency in a session that is there already: a Txn, a linearizable Get, a Txn; of these 2 are fsynced"},
			{"etcd, a session each", "the same with `NewSession` before and `Close` after: a lease is granted and revoked, too, and 4 are fsynced"},
			{"Regent", "`:acquire` with a new key and `:release`; both are durable before they are answered, and write an event each"},
			{bareName, bareWhat + ", and of a grant the fencing token; the key and the token are put in"},
		},
		Pairs: []Pair{
			{2, 0, Rate, "grant+release / etcd campaign+resign", at64and1(3, 1.3)},
			{2, 0, Late, "p99 of grant+release", at64and1(1, 1)},
			{3, 0, Rate, "", nil},
			{2, 1, Rate, "", nil},
		},
	}, b.flat(e.server, e.cycles), b.flat(e.server, e.sessions), b.flat(r.server, r.cycles), b.flat(r.server, bare{r}.cycles))
}

func (b *bench) renew() *contest {
	e, r := b.etcd, b.regent
	return b.throughput(Contest{
		ID: "renew", Title: "Durable renewals, one by one",
		About: "Each connection renews a lease of its own. What waits while a commit is under way goes into the next, all in one: a group commit, in both.",
		Entrants: []Entrant{
			{"etcd", "a Put of some 10 bytes to a key of its own: the smallest transaction that is fsynced"},
			{"Regent", "`:renew`; durable before it is answered"},
			{bareName, bareWhat},
		},
		Pairs: []Pair{
			{1, 0, Rate, "durable renewal / etcd synced put", at64and1(1.5, 1)},
			{1, 0, Late, "p99 of durable renewal", at64and1(1, 1)},
			{2, 0, Rate, "", nil},
		},
	}, b.flat(e.server, e.puts), b.flat(r.server, r.renewals), b.flat(r.server, bare{r}.renewals))
}

func (b *bench) batch() *contest {
	e, r := b.etcd, b.regent
	return b.throughput(Contest{
		ID: "batch", Title: "Renewals of 100 leases",
		About: "Each connection keeps 100 leases. The rates count leases; the delays are those of one operation, however many leases it has. etcd writes nothing " +
			"for a keep-alive: after a crash of the server its leases begin anew. Regent's renewals are on the disk.",
		Entrants: []Entrant{
			{"etcd, KeepAliveOnce", "clientv3's call for one keep-alive, which opens a stream for it; not durable"},
			{"etcd, stream", "one keep-alive after the other over one stream that is open; not durable"},
			{"etcd, stream of 100", "100 keep-alives are sent at once over one stream that is open, and 100 answers awaited; not durable"},
			{"Regent", "`:batchRenew` of 100 leases in one call; durable before it is answered"},
			{bareName, bareWhat + ", and counts the leases"},
		},
		Pairs: []Pair{
			{3, 0, Rate, "leases in batches of 100 / etcd KeepAliveOnce", at64and1(10, 10)},
			{3, 2, Late, "p99 of a batch of 100 / of 100 keep-alives in one stream", at64and1(1, 1)},
			{4, 0, Rate, "", nil},
			{3, 1, Rate, "", nil},
			{3, 2, Rate, "", nil},
			{4, 2, Rate, "", nil},
		},
	}, b.flat(e.server, e.keepAlives), b.flat(e.server, e.streams(1)), b.flat(e.server, e.streams(batchSize)),
		b.flat(r.server, r.batches), b.flat(r.server, bare{r}.batches))
}

func (b *bench) strong() *contest {
	e, r := b.etcd, b.regent
	return b.throughput(Contest{
		ID: "strong", Title: "Strong reads",
		About: "Each connection asks who leads an election; the answer includes every change made before the question.",
		Entrants: []Entrant{
			{"etcd", "a linearizable Get of one key"},
			{"Regent", "`GET …?consistency=strong`"},
			{bareName, bareWhat},
		},
		Pairs: []Pair{
			{1, 0, Rate, "strong read / etcd linearizable get", at64and1(1.3, 1.1)},
			{1, 0, Late, "p99 of strong read", at64and1(1, 1)},
			{2, 0, Rate, "", nil},
		},
	}, b.flat(e.server, e.reads()), b.flat(r.server, r.reads(true)), b.flat(r.server, bare{r}.reads(true)))
}

func (b *bench) cached() *contest {
	e, r := b.etcd, b.regent
	return b.throughput(Contest{
		ID: "cached", Title: "Cached reads",
		About: "The same, where the answer may be a little old.",
		Entrants: []Entrant{
			{"etcd", "a serializable Get of one key; nothing bounds its age"},
			{"Regent", "`GET …`; at most 5 s old, and it says how old it may be"},
			{bareName, bareWhat},
		},
		Pairs: []Pair{
			{1, 0, Rate, "cached read / etcd serializable get", at64and1(1.5, 1.2)},
			{1, 0, Late, "p99 of cached read", at64and1(1, 1)},
			{2, 0, Rate, "", nil},
		},
	}, b.flat(e.server, e.reads(etcdclient.WithSerializable())), b.flat(r.server, r.reads(false)), b.flat(r.server, bare{r}.reads(false)))
}
