//go:build !unix

package httpapi

import "math"

// mostConnections is how many connections a server may have. Where files are not counted there is no limit.
func mostConnections() int { return math.MaxInt }
