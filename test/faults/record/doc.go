// Package record has the configuration of an agent process of a fault run, and records what
// happens: with the Recorder of each process, and with the Proxy on the way to a server, which
// records each call.
//
//	run ---- Config, in the environment ----> agent process: its members, each with a role
//	    <--- a Line of JSON for each thing that a member did or saw
//
//	agent or command ----> Proxy ----> hop, where things go wrong ----> server
//
// Each connection on one side of a Proxy has one of its own on the other, and shares its fate: if
// one breaks, or falls silent, so does the other. Neither carries other callers' calls. So the
// caller meets the network as it is without the Proxy.
//
// All instants are of CLOCK_BOOTTIME, which all processes of a machine read alike; one in a time
// namespace takes its offset away.
package record
