// Package lockset is Jepsen's lock test (https://jepsen.io/analyses/etcd-3.4.3): processes that
// take turns, by leases, to read a set, to think, and to write it back with one element more. If
// two ever think at once, one of them undoes what the other has written. A pause of a process for
// longer than its lease makes that happen with every lock; only a fencing token, compared where the
// write arrives, refuses the late write.
//
//	test ---- Config ----> member 1..5 ---- leases ----> Regent
//	     <--- Updates ---              ----- sets -----> Firestore
//
// A test binary is its own members: TestMain calls Main first, which serves as one and says so if
// the environment asks for it.
package lockset
