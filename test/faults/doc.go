// Package faults runs Regent as it is run, in real processes, breaks what can break around it, and holds what everybody saw to what Regent
// promises (see package checker).
//
//	                 .----> ledger, where leaders write with their token
//	agents ---- hop -+----> server ---- hop ----> store's emulator, or a file
//	regent run  hop --------> server ---- hop ----> topic's emulator ----> subscriber
//
// A run has a seed, which chooses how many take part, in what parts, and what goes wrong when: the Plan. The same seed makes the same plan; the
// processes themselves are real, and do what they like. It goes on in phases:
//
//	warm-up     everybody is there, and nothing is broken
//	storm       one to four faults, side by side
//	heal, calm  nothing is broken, and leaders must be there again
//	quiet       nobody contends; who watches hears the rest
//	            all is stopped; the store's history is read; everything is checked
//
// All processes are in sessions of their own, die with the process that runs this, and are gone when a run returns.
package faults
