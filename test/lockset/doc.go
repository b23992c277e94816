// Package lockset is Jepsen's lock test (https://jepsen.io/analyses/etcd-3.4.3): processes that
// take turns, by leases, to read a set, to think, and to write it back with one more element. If
// two think at once, one of them overwrites the other's element. With any lock, a pause of a
// process for longer than its lease causes that; only a fencing token, compared where the write
// arrives, refuses the late write.
//
//	test ---- Config ----> member 1..5 ---- leases ----> Regent
//	     <--- Updates ---              ----- sets -----> Firestore
//
// A test binary serves as its own members: TestMain calls Main first, which runs as a member, and
// returns true, if the environment asks for it.
package lockset
