// Package test checks Regent as a whole: the README, and real processes on one store. See README.md
// for how Regent is tested.
package test
