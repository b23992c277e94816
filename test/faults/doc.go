// Package faults runs Regent in real processes, breaks what surrounds it, and holds what all agents
// saw to what Regent promises (see package checker).
//
//	                 .----> ledger, where leaders write with their token
//	agents ---- hop -+----> server ---- hop ----> store's emulator, or a file
//	regent run  hop --------> server -- hop, gate --> topic's emulator ---> subscriber
//
// A run has a seed, which chooses the agents, their roles, and which faults happen when: the Plan.
// The same seed makes the same plan; the processes themselves are real, and their timing is not
// planned. A run has phases:
//
//	warm-up     all agents run, and nothing is broken
//	faults      one to four, side by side
//	calm        nothing is broken, and every election must have a leader again
//	quiet       no agent contends; watchers hear the rest
//	            all processes are stopped; the store's history is read; everything is checked
//
// All processes are in sessions of their own, die with the process that runs this, and are gone
// when a run returns.
package faults
