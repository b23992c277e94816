package main

import "cmp"

// reason says why a goal is missed at that size, and how to meet it; "" if that is not written
// down. It is written by hand, and printed only while the goal is missed. The tables have the
// figures.
func reason(goal string, size int) string {
	const (
		both = "It takes less time in net/http on both sides."
		sync = "etcd writes nothing for a keep-alive; Regent's batch is on the disk before it is answered. "
		busy = "All cores are busy in both systems, so the ratio is that of the processor time of an operation, the client's included, which the table shows. "
		late = "With all cores busy a call waits for its turn, so the p99 follows the rate. It takes what the rate takes."
		rare = "One call in a hundred meets a slow sync of the disk, a garbage collection or other work of the machine, and a p99 is the delay of such a call; " +
			"it differs much from round to round, as its ends show. It takes a machine with cores to spare to tell more."
		turn = "One call follows the other, so the ratio is that of one call's delay: two HTTP stacks, Go's net/http in the client and in the server, " +
			"and for a change the sync of the disk, which both have. It takes a cheaper HTTP stack."
	)
	many, one := map[string]string{
		"grant+release / etcd campaign+resign": busy + "A grant and its release are two HTTP calls. " + both,
		"durable renewal / etcd synced put":    busy + both,
		"strong read / etcd linearizable get":  busy + both,
		"cached read / etcd serializable get":  busy + both,
		"leases in batches of 100 / etcd KeepAliveOnce": busy + "Regent checks and writes each of the 100 leases, and JSON has each of them in the request and in the answer; " +
			"etcd notes one lease in memory. It takes less time for a lease in a batch.",
		"p99 of a batch of 100 / of 100 keep-alives in one stream": sync + late,
		"p99 of take-over after a release": "The release and the next grant are two changes, one after the other; etcd's next candidate has its key already, and needs none. " +
			"It takes both in one commit.",
		"p99 of grant+release": late, "p99 of durable renewal": late, "p99 of strong read": late, "p99 of cached read": late,
	}[goal], map[string]string{
		"leases in batches of 100 / etcd KeepAliveOnce": "A batch waits for the disk, and its 100 leases are read, checked, written and answered by one core after the other; " +
			"a KeepAliveOnce waits for no disk. It takes less time for a lease in a batch.",
		"p99 of a batch of 100 / of 100 keep-alives in one stream": sync + rare,
		"grant+release / etcd campaign+resign":                     turn, "durable renewal / etcd synced put": turn,
		"strong read / etcd linearizable get": turn, "cached read / etcd serializable get": turn,
		"p99 of grant+release": rare, "p99 of durable renewal": rare, "p99 of strong read": rare, "p99 of cached read": rare,
	}[goal]
	if size == 1 {
		return cmp.Or(one, many)
	}
	return many
}
