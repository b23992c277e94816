//go:build !unix

package httpapi

import "math"

// mostByFiles returns for how many connections the process may open files: there is no limit here.
func mostByFiles() int { return math.MaxInt }
