// Package examples has two agents to copy, for whoever does not write Go: agent.sh, with bash and curl, and agent.py, one file on Python's standard
// library. Both stand in line for an election, run a command while they lead it, and have it gone before their lease is over; agent.py
// is a module as well. The tests run them against a real server, over lines that are cut and stalled.
package examples
