package load

import (
	"cmp"
	"sync"
)

// Each calls do for 0 to n-1, at most atATime at a time, and returns the error of the least number.
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
