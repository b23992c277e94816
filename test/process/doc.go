// Package process builds the programs of this repository for tests, starts them, waits until they
// serve, and ends them. It also looks at the processes of this machine.
//
// A Program is linked once, into Go's build cache, for all packages and all runs until its source
// changes. A started process leads a process group of its own, and is killed when its test ends, or
// when the process that started it is killed.
package process
