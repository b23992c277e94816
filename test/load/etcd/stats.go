package main

import (
	"math"
	"slices"
	"time"
)

// Spread is the median and the ends of some numbers.
type Spread struct{ Median, Least, Most float64 }

// spreadOf returns the zero Spread for no numbers. The median of an even count is the mean of the
// two in the middle.
func spreadOf(numbers []float64) Spread {
	n := len(numbers)
	if n == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(numbers))
	return Spread{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]}
}

// percentile returns the smallest of the sorted numbers that at least the part p of them do not
// exceed (the nearest rank); zero for none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(int(math.Ceil(p*float64(len(sorted)))), 1)-1]
}

// ratios divides the figures of the same round. A round in which either is 0 has no ratio.
func ratios(of, by []float64) []float64 {
	var all []float64
	for i := range min(len(of), len(by)) {
		if of[i] > 0 && by[i] > 0 {
			all = append(all, of[i]/by[i])
		}
	}
	return all
}

// milliseconds returns the duration as a number.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
