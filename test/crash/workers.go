package crash

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"regent/test/load"
)

// check returns the kind of the image with that number, and the verdict on it. The error says what
// is wrong with it.
type check func(image int) (kind, verdict string, err error)

// checkAll divides images among as many workers as there are processors, each with a check of its
// own that it calls in order until an image is wrong, and returns how many images of each kind had
// each verdict.
func checkAll(ctx context.Context, images int, worker func() check) (map[string]int, error) {
	found := make(map[string]int)
	var mu sync.Mutex // guards found
	workers := runtime.GOMAXPROCS(0)
	return found, load.Each(workers, workers, func(w int) error {
		check := worker()
		for i := images * w / workers; i < images*(w+1)/workers; i++ {
			kind, verdict, err := check(i)
			if err = cmp.Or(err, ctx.Err()); err != nil {
				return err
			}
			mu.Lock()
			found[kind+", "+verdict]++
			mu.Unlock()
		}
		return nil
	})
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
