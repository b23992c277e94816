package crash

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// check returns the kind of the image with that number, and the verdict on it. The error says what
// is wrong with it.
type check func(image int) (kind, verdict string, err error)

// enough is how many wrong images a worker finds before it stops.
const enough = 3

// checkAll divides images among as many workers as there are processors, each with a check of its
// own that it calls in order, and returns how many images of each kind had each verdict.
func checkAll(ctx context.Context, images int, worker func() check) (map[string]int, error) {
	found := make(map[string]int)
	var mu sync.Mutex // guards found and wrong
	var wrong []error
	var all sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		all.Go(func() {
			check, bad := worker(), 0
			for i := images * w / workers; i < images*(w+1)/workers && bad < enough && ctx.Err() == nil; i++ {
				kind, verdict, err := check(i)
				mu.Lock()
				if err != nil {
					bad++
					wrong = append(wrong, err)
				} else {
					found[kind+", "+verdict]++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return found, errors.Join(append(wrong, ctx.Err())...)
}

// patience is how long the check of an image may take before it counts as hanging.
const patience = 2 * time.Minute

// guarded makes an error of a panic. A check that hangs ends the process, and its image stays.
func guarded(p plan, check func() error) (err error) {
	hangs := time.AfterFunc(patience, func() { panic(fmt.Sprintf("%s: the check hangs", p)) })
	defer hangs.Stop()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return check()
}
