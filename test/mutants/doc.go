// Package mutants plants bugs and sees them caught.
//
// A test that cannot fail proves nothing, and neither does a checker, a simulator or a search. So each property that Regent is said to have is broken
// here on purpose, in the product's own source, by one small change of its text; and the tests that are to stand for the property have to
// fail. Most of the bugs are such as others have had, and each says whose it was.
//
//	rules.go      what decides: leases, tokens, revisions
//	service.go    what stands between the rules and a store
//	store.go      the stores, and the moves between them
//	leader.go     the leader's half: its deadline, its campaign, its command, its fence
//	waiting.go    who stands in line
//	telling.go    who is told: outbox, hub, cache
//	cloud.go      the stores that need emulators
//
// A planted bug is caught if its tests compile, and fail. One that its tests let pass has SURVIVED: there is a test missing, or one has gone
// blind. One that cannot be planted is Broken, for the code has moved on: it is mended or taken away, and never counts as caught; nor does one whose
// tests fail without it too, or do not run.
//
// The tree is never touched: go builds with an overlay, which shows it a changed file in the place of another.
package mutants
