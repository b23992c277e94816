// Package lockset is Jepsen's lock test (https://jepsen.io/analyses/etcd-3.4.3): processes that
// take turns, by leases, to read a set, to think, and to write it back with one element more. If
// two ever think at once, one of them undoes what the other has written. Whoever pauses a process
// for longer than a lease lasts makes that happen to every lock there is; it is a fencing token,
// compared where the write arrives, that turns the late write away.
//
//	test ---- Config ----> member 1..5 ---- leases ----> Regent
//	     <--- Updates ---              ----- sets -----> Firestore
//
// A test binary is its own members: TestMain calls Main first, which serves as one and says so if
// the environment asks for it.
package lockset
