package load

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"
)

// Spread is the median and the ends of some numbers.
type Spread struct{ Median, Least, Most float64 }

// SpreadOf is zero for no numbers.
func SpreadOf(numbers []float64) Spread {
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

// Percentile returns the smallest of the sorted numbers that at least the part p of them do not
// exceed (the nearest rank); zero for none.
func Percentile[T cmp.Ordered](sorted []T, p float64) T {
	if len(sorted) == 0 {
		return *new(T)
	}
	rank := int(math.Ceil(p * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Ratios divides what was measured in the same round. A round in which either is 0 has no ratio.
func Ratios(of, by []float64) []float64 {
	var all []float64
	for i := range min(len(of), len(by)) {
		if of[i] > 0 && by[i] > 0 {
			all = append(all, of[i]/by[i])
		}
	}
	return all
}

// Shares divides n among so many, as evenly as can be. No share is 0, so there may be fewer.
func Shares(n, among int) []int {
	all := make([]int, min(n, among))
	for i := range n {
		all[i%len(all)]++
	}
	return all
}

// Milliseconds is the duration as a number.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Each calls do for 0 to n-1, at most so many at a time, and returns the first error by number.
func Each(n, atATime int, do func(i int) error) error {
	errs := make([]error, n)
	slots := make(chan struct{}, atATime)
	var running sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(i)
		})
	}
	running.Wait()
	return cmp.Or(errs...)
}
