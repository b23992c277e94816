// Package test holds what is true of the whole of Regent and not of one package: the arrows between packages, the README, and several
// real processes on one store.
package test
