//go:build !linux

package httpapi

// arrivals cannot watch connections here; longCall does it with a goroutine for each.
type arrivals struct{}

func (*arrivals) await(*longCall) bool { return false }
func (*arrivals) forget(*longCall)     {}
func (*arrivals) close()               {}
