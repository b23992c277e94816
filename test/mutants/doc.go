// Package mutants plants bugs and sees them caught.
//
// A test that cannot fail proves nothing, and neither does a checker, a simulator or a search. So
// each property that Regent promises is broken here on purpose, in the product's own source, by one
// small patch, and the tests that stand for the property must fail. Most of the bugs are ones that
// other projects have had.
//
// Each bug is a file patches/NAME.patch: a line that says what is wrong, the property that it
// breaks, the packages whose tests must catch it, each by itself and in their short form, and a
// unified diff. Where such a package is slow, some of its tests are named, which are tried first:
// if they let the bug pass, or are gone, the whole package decides. A hunk is found by its lines,
// which must stand in the file exactly once, so it has no line numbers. To add a bug, make it in
// the source, write the head, append the output of git diff, and take the change back. After the
// product has changed,
//
//	go run ./test/mutants/refresh
//
// rewrites the patches whose context has changed or whose code has moved, and lists those that no
// longer apply.
//
// A planted bug is caught if its tests compile and fail. One that its tests let pass has SURVIVED:
// a test is missing, or one has gone blind. One that cannot be planted is BROKEN, and never counts
// as caught; nor does one whose tests fail without it too, or do not run. Each verdict says why.
//
// The source tree is never touched: go builds with an overlay, which shows it a changed file in the
// place of another. All bugs are built into one test binary of a package, which an environment
// variable tells which of them is on: a function that has one begins with a look at it, and is then
// the changed function instead. The tests run on the same binary with none of them on. A bug that
// changes more than the bodies of functions has a build of its own.
package mutants
