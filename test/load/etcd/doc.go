// Package etcd measures Regent beside etcd on one machine, in alternating rounds of one run. make
// compare writes what it found into README.md:
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
// A contest is something that both do. In each round one of them runs after the other for the same
// time, so that other work of the machine meets both alike. The first round is dropped.
package etcd
