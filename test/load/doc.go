// Package load has what the measurements of Regent under load share:
//
//	Crowd    thousands of agents in a process of their own, each with its own connection
//	Each     a loop over goroutines, so many at a time
//
// The measurements themselves:
//
//	test/crowd_test.go     what ten thousand waiting and watching agents cost (make load)
//	test/many_test.go      what 100,000 elections cost beside 10,000 (make load)
//	test/load/counts       what Regent asks of Firestore and Spanner, in RPCs, documents and rows
//	test/load/allocations  what each call allocates, from the HTTP door to the local store
//	test/load/etcd         Regent beside etcd, in a module of its own because that is heavy (make
//	                       compare; it writes the figures of its README.md)
//
// A crowd runs in its own process so that its memory and processor time are not taken for those of
// the servers. A test binary is its own crowd: TestMain calls Main first.
//
//	test ---- Config ----> crowd ==== n connections ====> servers
//	     <--- Reports ---
package load
