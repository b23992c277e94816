package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"regent/leadership"
)

// Fault is what happens to one call of a store.
type Fault int

// The faults.
const (
	None    Fault = iota
	Refused       // nothing is done, and the caller is told so
	Lost          // it is done, and the reply is lost
	Delayed       // the caller is told that the outcome is unknown, and it is done after the next call
)

var errFault = errors.New("a planted fault")

// Faulty returns a store whose writing calls go wrong as next says. It is for one caller at a time.
func Faulty(store leadership.Store, next func() Fault) *Fake {
	var mu sync.Mutex
	var late []func() // calls that were delayed; guarded by mu
	return &Fake{Store: store, Around: func(ctx context.Context, c Call, do func(context.Context) error) error {
		if !c.Writes() {
			return do(ctx)
		}
		mu.Lock()
		defer mu.Unlock()
		due := late
		late = nil
		defer func() {
			for _, do := range due {
				do()
			}
		}()
		call := func() error { return do(context.WithoutCancel(ctx)) }
		switch next() {
		case Refused:
			return fmt.Errorf("%w: %w", leadership.StoreUnavailable, errFault)
		case Lost:
			call()
			return fmt.Errorf("%w: %w", leadership.OutcomeUnknown, errFault)
		case Delayed:
			late = append(late, func() { call() })
			return fmt.Errorf("%w: %w", leadership.OutcomeUnknown, errFault)
		}
		return call()
	}}
}

func isAny(err error, codes ...leadership.Code) bool {
	for _, code := range codes {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}
