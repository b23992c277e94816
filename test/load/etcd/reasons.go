package main

import "cmp"

// why says why a goal is missed, and what it would take. It is written by hand, and printed only
// while the goal is missed.
type why struct {
	goal      string
	many, one string // at 64 and at 1; if only one is set, it is for both
}

// whys are about goals as they were missed in the committed report.
func whys() []why {
	const (
		twice = "The local store syncs twice for each commit, where etcd syncs once, and takes 171 of the 242 µs of processor time of a grant and its release. " +
			"It takes a store with one sync for each commit."
		waits = "One caller waits for every sync, and the local store needs two for each commit, where etcd needs one. It takes a store with one sync for each commit."
		call  = "A read costs about as much processor time in both systems, and nearly half of it is the client's: Go's net/http here, gRPC there; without a client Regent answers far more (the row of bare HTTP). " +
			"It takes an HTTP client and a server that cost less than net/http."
	)
	return []why{
		{"grant+release / etcd campaign+resign", twice, waits},
		{"p99 of grant+release", twice, waits},
		{"durable renewal / etcd synced put", twice, waits},
		{"p99 of durable renewal", twice, waits},
		{"leases in batches of 100 / etcd KeepAliveOnce", "The SDK's part of a batch costs about as much processor time as the server's: the row of bare HTTP shows the same without it.", waits},
		{"p99 of a batch of 100 / of 100 keep-alives in one stream", "etcd writes nothing for a keep-alive; Regent's batch is on the disk before it is answered.", ""},
		{"strong read / etcd linearizable get", call, ""},
		{"p99 of strong read", call, ""},
		{"cached read / etcd serializable get", call, ""},
		{"p99 of cached read", call, ""},
		{"p99 of take-over after a release", "A release and the grant after it are two commits, one after the other; etcd's is one.", waits},
	}
}

// reason is "" if none is written down.
func reason(goal string, size int) string {
	for _, w := range whys() {
		switch {
		case w.goal != goal:
		case size == 1:
			return cmp.Or(w.one, w.many)
		default:
			return cmp.Or(w.many, w.one)
		}
	}
	return ""
}
