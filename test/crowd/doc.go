// Package crowd is thousands of agents at once, for tests: candidates that wait to lead one election, or watchers of its stream. They live in a
// process of their own, so that what they need is not taken for what the servers need, and each has a connection of its own.
//
//	test ---- Config ----> crowd ==== n connections ====> servers
//	     <--- Reports ---
//
// A test binary is its own crowd: TestMain calls Main first, which serves as one and says so if the environment asks for it.
package crowd
