// Package mutants plants bugs, and checks that tests catch them.
//
// A test that cannot fail proves nothing, and neither does a checker, a simulator or a search. So
// small patches here break each property that Regent promises, on purpose, in the product's own
// source, and the tests of the property must fail. Most of the bugs are ones that other projects
// have had.
//
// Each bug is a file patches/NAME.patch: a line that says what is wrong, the property that it
// breaks, the packages whose tests must catch it, each by itself and in their short form, and a
// unified diff. Where such a package is slow, some of its tests are named and tried first: if they
// pass with the bug, or are gone, the whole package decides. A hunk is found by its lines, which
// must occur in the file exactly once, so it has no line numbers. To add a bug, make it in the
// source, write the head, append the output of git diff, and take the change back. After the
// product has changed,
//
//	go run ./test/mutants/refresh
//
// rewrites the patches whose context has changed or whose code has moved, and lists those that no
// longer apply.
//
// A planted bug is caught if its tests compile and fail. A bug with which its tests pass has
// SURVIVED: a test is missing, or no longer checks anything. A bug that cannot be planted is
// BROKEN, and never counts as caught; neither does one whose tests also fail without it, or do not
// run. Each verdict says why.
//
// The source tree is never changed: go builds with an overlay, which replaces files by changed
// ones. All bugs are built into one test binary of a package, and an environment variable switches
// one on: a function with a bug first checks that variable, and then runs the changed body instead.
// The tests also run on the same binary with no bug switched on. A bug that changes more than the
// bodies of functions has a build of its own.
package mutants
