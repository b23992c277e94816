// Package examples has two agents to copy, for programs that are not written in Go: agent.sh, with
// bash and curl, and agent.py, one file on Python's standard library. Both wait for an election,
// run a command while they lead it, and stop it before their lease is over; agent.py is a module as
// well. The tests run them against a real server, over connections that are cut and stalled.
package examples
