// Package examples has programs to copy.
//
// Two agents are for programs that are not written in Go: agent.sh, with bash and curl, and
// agent.py, one file on Python's standard library. Both wait for an election, run a command while
// they lead it, and stop it before their lease is over; agent.py is a module as well. The tests run
// them against a real server, over connections that are cut and stalled.
//
// Two are in Go, and stand on the journal of an election: Map is a map with a copy in each program
// of a fleet, and Tasks is a queue that hands the tasks of a worker that has vanished out again.
package examples
