//go:build !unix

package httpapi

import "math"

// mostConnections returns how many connections a server may have: there is no limit on files here.
func mostConnections() int { return math.MaxInt }
