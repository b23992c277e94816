package storetest

import (
	"context"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// Fake is a store, with its journal, whose calls a test observes, answers itself, makes fail, or
// delays. With it tests need no fake store of their own.
type Fake struct {
	service.Store
	// Around is called in place of each call of the store except Close. It may call next to make
	// the call, with the caller's ctx or another one. It returns the caller's error; with an error
	// the caller gets nothing else.
	Around func(ctx context.Context, c Call, next func(context.Context) error) error
}

// Call is a call of a store.
type Call struct {
	Method   string              // such as "Update"
	Election leadership.Election // if the call is about one
	Leases   []rule.Renewal
	Marked   []leadership.EventID
	// Decide is the decision of an Update. Around may replace it before it calls next.
	Decide *func(rule.Snapshot) (rule.Change, error)
}

// Writes reports whether the call can change something.
func (c Call) Writes() bool {
	return slices.Contains([]string{"Update", "Renew", "MarkAnnounced", "Amend", "Trim"}, c.Method)
}

func around[T any](ctx context.Context, f *Fake, c Call, do func(context.Context) (T, error)) (T, error) {
	var result, none T
	err := f.Around(ctx, c, func(ctx context.Context) (err error) {
		result, err = do(ctx)
		return err
	})
	if err != nil {
		return none, err
	}
	return result, nil
}

// Update implements service.Store.
func (f *Fake) Update(
	ctx context.Context, e leadership.Election, x rule.Expect, decide func(rule.Snapshot) (rule.Change, error),
) (rule.Snapshot, error) {
	return around(ctx, f, Call{Method: "Update", Election: e, Decide: &decide}, func(ctx context.Context) (rule.Snapshot, error) {
		return f.Store.Update(ctx, e, x, decide)
	})
}

// Get implements service.Store.
func (f *Fake) Get(ctx context.Context, e leadership.Election) (rule.Snapshot, error) {
	return around(ctx, f, Call{Method: "Get", Election: e}, func(ctx context.Context) (rule.Snapshot, error) {
		return f.Store.Get(ctx, e)
	})
}

// List implements service.Store.
func (f *Fake) List(ctx context.Context, prefix string, after leadership.Election, limit int) (rule.Listing, error) {
	return around(ctx, f, Call{Method: "List"}, func(ctx context.Context) (rule.Listing, error) {
		return f.Store.List(ctx, prefix, after, limit)
	})
}

// Held implements service.Store.
func (f *Fake) Held(ctx context.Context, after leadership.Election, limit int) (rule.Listing, error) {
	return around(ctx, f, Call{Method: "Held"}, func(ctx context.Context) (rule.Listing, error) {
		return f.Store.Held(ctx, after, limit)
	})
}

// Retirable implements service.Store.
func (f *Fake) Retirable(ctx context.Context, at time.Time, limit int) ([]leadership.Election, error) {
	return around(ctx, f, Call{Method: "Retirable"}, func(ctx context.Context) ([]leadership.Election, error) {
		return f.Store.Retirable(ctx, at, limit)
	})
}

// Renew implements service.Store. An error of Around is the answer to each lease.
func (f *Fake) Renew(ctx context.Context, leases []rule.Renewal) []rule.Renewed {
	answers, err := around(ctx, f, Call{Method: "Renew", Leases: leases}, func(ctx context.Context) ([]rule.Renewed, error) {
		return f.Store.Renew(ctx, leases), nil
	})
	if err != nil {
		return slices.Repeat([]rule.Renewed{{Err: err}}, len(leases))
	}
	return answers
}

// Events implements service.Store.
func (f *Fake) Events(ctx context.Context, e leadership.Election, after leadership.Revision, limit int) ([]leadership.Event, error) {
	return around(ctx, f, Call{Method: "Events", Election: e}, func(ctx context.Context) ([]leadership.Event, error) {
		return f.Store.Events(ctx, e, after, limit)
	})
}

// Since implements service.Store.
func (f *Fake) Since(ctx context.Context, after time.Time, limit int) (rule.Recent, error) {
	return around(ctx, f, Call{Method: "Since"}, func(ctx context.Context) (rule.Recent, error) {
		return f.Store.Since(ctx, after, limit)
	})
}

// Unannounced implements service.Store.
func (f *Fake) Unannounced(ctx context.Context, e leadership.Election, limit int) ([]leadership.Event, error) {
	return around(ctx, f, Call{Method: "Unannounced", Election: e}, func(ctx context.Context) ([]leadership.Event, error) {
		return f.Store.Unannounced(ctx, e, limit)
	})
}

// MarkAnnounced implements service.Store.
func (f *Fake) MarkAnnounced(ctx context.Context, ids []leadership.EventID) error {
	_, err := around(ctx, f, Call{Method: "MarkAnnounced", Marked: ids}, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, f.Store.MarkAnnounced(ctx, ids)
	})
	return err
}

// journal returns the store as a Journal, which every store of this module implements.
func (f *Fake) journal() service.Journal { return f.Store.(service.Journal) }

// Amend implements service.Journal.
func (f *Fake) Amend(ctx context.Context, id rule.LogID, decide func(rule.Log) (rule.LogChange, error)) (rule.Log, error) {
	return around(ctx, f, Call{Method: "Amend", Election: id.Election}, func(ctx context.Context) (rule.Log, error) {
		return f.journal().Amend(ctx, id, decide)
	})
}

// Look implements service.Journal.
func (f *Fake) Look(ctx context.Context, id rule.LogID) (rule.Log, error) {
	return around(ctx, f, Call{Method: "Look", Election: id.Election}, func(ctx context.Context) (rule.Log, error) {
		return f.journal().Look(ctx, id)
	})
}

// Segments implements service.Journal.
func (f *Fake) Segments(ctx context.Context, id rule.LogID, after leadership.Index, limit int) ([]rule.Segment, error) {
	return around(ctx, f, Call{Method: "Segments", Election: id.Election}, func(ctx context.Context) ([]rule.Segment, error) {
		return f.journal().Segments(ctx, id, after, limit)
	})
}

// Snapshot implements service.Journal.
func (f *Fake) Snapshot(ctx context.Context, id rule.LogID) (rule.Segment, error) {
	return around(ctx, f, Call{Method: "Snapshot", Election: id.Election}, func(ctx context.Context) (rule.Segment, error) {
		return f.journal().Snapshot(ctx, id)
	})
}

// Trim implements service.Journal.
func (f *Fake) Trim(ctx context.Context, id rule.LogID, upTo leadership.Index) error {
	_, err := around(ctx, f, Call{Method: "Trim", Election: id.Election}, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, f.journal().Trim(ctx, id, upTo)
	})
	return err
}

// Logs implements service.Journal.
func (f *Fake) Logs(ctx context.Context, after rule.LogID, limit int) ([]rule.LogID, error) {
	return around(ctx, f, Call{Method: "Logs"}, func(ctx context.Context) ([]rule.LogID, error) {
		return f.journal().Logs(ctx, after, limit)
	})
}
