//go:build !failpoints

// Package failpoint kills the process at a named point of the code, as kill -9 would, so that tests can see what survives.
//
// Only a build with the tag failpoints has such points; in any other, Hit is an empty function that is inlined away. A test starts the
// process with REGENT_FAILPOINT="name:n", and it dies at the n-th hit of that name, n from 1: no deferred function runs, nothing is flushed.
// Which names there are is told by the packages that hit them.
package failpoint

// Hit says that the code has come to the point of that name.
func Hit(name string) {}
