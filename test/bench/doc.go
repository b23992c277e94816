// Command bench measures Regent beside etcd on one machine, in alternating rounds of one run, and writes what it found to README.md,
// ratios.svg and results.json:
//
//	        +--------------------- load: this process ---------------------+
//	        | a goroutine for each connection, the clients that agents use  |
//	        +------+-----------------------------------------------+-------+
//	    gRPC, clientv3                               HTTP/JSON, leadership/client
//	               |                                                |
//	etcd, one member, from its packages (bench etcd)     regent serve, as it is shipped, on bolt
//	               |                                                |
//	               +------------- one disk, fsync on both ----------+
//
// Where a client can be the limit, Regent is also called with none: over plain TCP connections, with requests that were written beforehand.
//
// A contest is something that both do: its entrants are the ways to do it. Each round lets one entrant after the other run for the
// same time, so that whatever else the machine does meets all of them alike. The first round is dropped.
package main
