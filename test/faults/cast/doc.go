// Package cast is what an agent process of a fault run is told, and what it tells.
//
//	run ---- Config, in the environment ----> agent process: its members, each with a part to play
//	    <--- a Line of JSON for each thing that a member did or saw
//
// All instants are of CLOCK_BOOTTIME, which all processes of a machine read alike; one in a time namespace takes its offset away.
package cast
