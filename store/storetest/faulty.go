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
	Refused       // nothing is done, and the caller hears so
	Lost          // it is done, and the reply is lost
	Delayed       // the caller hears that the outcome is unknown, and it is done after the next call
)

// Faulty is a store whose calls go wrong as told. It is for one caller at a time.
type Faulty struct {
	leadership.Store
	// Next says what happens to the next call that can change something.
	Next func() Fault

	mu   sync.Mutex
	late []func() // calls that were delayed
}

var errFault = errors.New("a planted fault")

// Update implements leadership.Store.
func (f *Faulty) Update(ctx context.Context, e leadership.Election, decide func(leadership.Snapshot) (leadership.Change, error)) (leadership.Snapshot, error) {
	var snap leadership.Snapshot
	var err error
	fault := f.call(func() { snap, err = f.Store.Update(context.WithoutCancel(ctx), e, decide) })
	if fault != nil {
		return leadership.Snapshot{}, fault
	}
	return snap, err
}

// Renew implements leadership.Store.
func (f *Faulty) Renew(ctx context.Context, leases []leadership.Renewal) []leadership.Renewed {
	var answers []leadership.Renewed
	if fault := f.call(func() { answers = f.Store.Renew(context.WithoutCancel(ctx), leases) }); fault != nil {
		answers = make([]leadership.Renewed, len(leases))
		for i := range answers {
			answers[i].Err = fault
		}
	}
	return answers
}

// MarkAnnounced implements leadership.Store.
func (f *Faulty) MarkAnnounced(ctx context.Context, ids []leadership.EventID) error {
	var err error
	if fault := f.call(func() { err = f.Store.MarkAnnounced(context.WithoutCancel(ctx), ids) }); fault != nil {
		return fault
	}
	return err
}

// call carries do out, or not, or later.
func (f *Faulty) call(do func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	late := f.late
	f.late = nil
	defer func() {
		for _, do := range late {
			do()
		}
	}()
	switch f.Next() {
	case Refused:
		return fmt.Errorf("%w: %w", leadership.StoreUnavailable, errFault)
	case Lost:
		do()
		return fmt.Errorf("%w: %w", leadership.OutcomeUnknown, errFault)
	case Delayed:
		f.late = append(f.late, do)
		return fmt.Errorf("%w: %w", leadership.OutcomeUnknown, errFault)
	}
	do()
	return nil
}

func isAny(err error, codes ...leadership.Code) bool {
	for _, code := range codes {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}
