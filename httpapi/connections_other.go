//go:build !unix

package httpapi

import "math"

// mostByFiles returns how many connections the process may open files for: on this system there is
// no limit.
func mostByFiles() int { return math.MaxInt }
