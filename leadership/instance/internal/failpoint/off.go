//go:build !failpoints

// Package failpoint kills the process at a named point of the code, as kill -9 would, so that tests
// can check what survives.
//
// Only a build with the tag failpoints has such points; in any other, Hit is an empty function that
// is inlined away. A test starts the process with REGENT_FAILPOINT="name:n": the process dies at
// the n-th hit of that name, n from 1. No deferred function runs, nothing is flushed. Packages that
// have points list their names in doc.go.
package failpoint

// Hit marks the point of that name.
func Hit(name string) {}
