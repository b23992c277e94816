// Package lockset is Jepsen's lock test (https://jepsen.io/analyses/etcd-3.4.3): processes take
// turns, by leases, to read a set, to think, and to write it back with one element more. If two
// ever think at once, one of them undoes what the other has written. Pausing a process for longer
// than a lease makes that happen with every kind of lock; only a fencing token, compared where the
// write arrives, turns the late write away.
//
//	test ---- Config ----> member 1..5 ---- leases ----> Regent
//	     <--- Updates ---              ----- sets -----> Firestore
//
// A test binary is its own members: TestMain calls Main first.
package lockset
