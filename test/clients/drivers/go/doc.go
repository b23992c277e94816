// Driver leads the Go SDK as package clients says, and is the worker that regent run and
// agent.sh run:
//
//	driver          leads, and watches
//	driver worker   notes that it lives
package main
