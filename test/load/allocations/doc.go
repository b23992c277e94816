// Package allocations holds what each call allocates, from the HTTP door to the store in a local
// folder and back, to testdata/allocations.md. Allocations, unlike times, do not depend on how busy
// the machine is. The race detector allocates too, so the test is not built with it.
package allocations
