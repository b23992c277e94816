package main

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Spread is the median and the ends of some numbers.
type Spread struct{ Median, Least, Most float64 }

// spreadOf is zero for no numbers.
func spreadOf(numbers []float64) Spread {
	if len(numbers) == 0 {
		return Spread{}
	}
	return Spread{median(numbers), slices.Min(numbers), slices.Max(numbers)}
}

// median of an even count is the mean of the two in the middle; NaN for none.
func median(numbers []float64) float64 {
	n := len(numbers)
	if n == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(numbers))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// percentile returns the smallest of the sorted numbers that at least the part p of them do not
// exceed (the nearest rank); zero for none.
func percentile[T cmp.Ordered](sorted []T, p float64) T {
	if len(sorted) == 0 {
		return *new(T)
	}
	rank := int(math.Ceil(p * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// ratios divides what was measured in the same round. A round in which either is 0 has no ratio.
func ratios(of, by []float64) []float64 {
	var all []float64
	for i := range min(len(of), len(by)) {
		if of[i] > 0 && by[i] > 0 {
			all = append(all, of[i]/by[i])
		}
	}
	return all
}

// shares divides n among so many, as evenly as can be. No share is 0, so there may be fewer.
func shares(n, among int) []int {
	all := make([]int, min(n, among))
	for i := range n {
		all[i%len(all)]++
	}
	return all
}

// milliseconds is the duration as a number.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
