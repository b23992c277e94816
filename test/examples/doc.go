// Package examples has programs to copy.
//
// agent.sh needs bash and curl. It waits for an election, runs a command while it leads it, and
// stops it before its lease is over. The tests run it against a real server, over connections that
// are cut and stalled.
//
// Two are in Go, and stand on the journal of an election: Map is a map with a copy in each program
// of a fleet, and Tasks is a queue that hands the tasks of a worker that has vanished out again.
package examples
