package wire

import "strconv"

// Quote shows what a caller sent, cut to what a person can read in a log line.
func Quote(s string) string {
	const limit = 64
	if len(s) > limit {
		return strconv.Quote(s[:limit]) + "…"
	}
	return strconv.Quote(s)
}
