// Command etcd measures Regent beside etcd on one machine, in alternating rounds of one run, and
// writes what it found to README.md and results.json:
//
//	        +--------------------- load: this process ---------------------+
//	        | a goroutine for each connection, the clients that agents use  |
//	        +------+-----------------------------------------------+-------+
//	    gRPC, clientv3                               HTTP/JSON, leadership/client
//	               |                                                |
//	etcd, one member, from its packages            regent serve, on its local store
//	               |                                                |
//	               +------------- one disk, fsync on both ----------+
//
// A contest is something that both do; its entrants are the ways to do it. In each round one
// entrant after the other runs for the same time, so that other work of the machine meets all of
// them alike. The first round is dropped. Goals are Pair.Goals; why one is missed is written down
// in reasons.go.
package main
