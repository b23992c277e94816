package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// eachLog calls do for every log of the store.
func eachLog(ctx context.Context, j service.Journal, do func(rule.LogID) error) error {
	var after rule.LogID
	for {
		ids, err := j.Logs(ctx, after, leadership.MaxPageSize)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			if err := do(id); err != nil {
				return fmt.Errorf("the %s of election %q: %w", id.Kind, id.Election, err)
			}
		}
		after = ids[len(ids)-1]
	}
}

// raiseLogs raises the marks of the logs of all chosen elections.
func (r Raising) raiseLogs(ctx context.Context, s Store, done *Raised) error {
	return eachLog(ctx, s, func(id rule.LogID) error {
		if !strings.HasPrefix(string(id.Election), r.Prefix) {
			return nil
		}
		_, err := s.Amend(ctx, id, func(l rule.Log) (rule.LogChange, error) {
			return rule.RaisedLog(l, leadership.Token(r.Above), true)
		})
		if errors.Is(err, leadership.RecordCorrupt) {
			done.Logs = append(done.Logs, fmt.Sprintf("the %s of %s", id.Kind, id.Election))
			return nil
		}
		return err
	})
}

// planLogs collects the logs that cannot be moved.
func planLogs(ctx context.Context, from, to Store, refused *refusals) error {
	return eachLog(ctx, from, func(id rule.LogID) error {
		old, err := from.Look(ctx, id)
		if err != nil {
			return err
		}
		there, err := to.Look(ctx, id)
		if err != nil {
			return err
		}
		after, all, err := rule.LogCopied(there, rule.LogCopy{Log: old})
		if err == nil && !all {
			err = samePart(ctx, from, to, id, after)
		}
		if refused.take(id.Election, err) {
			return nil
		}
		return err
	})
}

// moveLogs copies all logs. Call it after all elections are moved: they no longer have leaders.
func moveLogs(ctx context.Context, from, to Store) error {
	return eachLog(ctx, from, func(id rule.LogID) error {
		snap, err := from.Get(ctx, id.Election)
		if err != nil {
			return err
		}
		// From here on no past leader can write to the log, in either store.
		old, err := from.Amend(ctx, id, func(l rule.Log) (rule.LogChange, error) {
			return rule.RaisedLog(l, snap.Record.Token, false)
		})
		if err != nil {
			return err
		}
		return moveLog(ctx, from, to, rule.LogCopy{Log: old})
	})
}

// moveLog copies a log, a part at a time. After each part the copy is a valid but shorter journal.
func moveLog(ctx context.Context, from, to Store, c rule.LogCopy) (err error) {
	if c.Snapshot, err = from.Snapshot(ctx, c.ID); err != nil {
		return err
	}
	for {
		there, err := to.Look(ctx, c.ID)
		if err != nil {
			return err
		}
		after, all, err := rule.LogCopied(there, c)
		switch {
		case err != nil:
			return err
		case all && there.Text != c.Text:
			return nil // it was moved before and is in use
		case all:
			return sameLog(ctx, from, to, c)
		}
		if err := samePart(ctx, from, to, c.ID, after); err != nil {
			return err
		}
		if c.Next, err = from.Segments(ctx, c.ID, after, leadership.MaxBatch/2-1); err != nil {
			return err
		}
		if err := reached(ctx, to, c); err != nil {
			return err
		}
		if _, err := to.Amend(ctx, c.ID, func(l rule.Log) (rule.LogChange, error) { return rule.CopyLog(l, c) }); err != nil {
			return err
		}
	}
}

// aheadLimit is how far ahead of the new store's clock a move waits for it.
const aheadLimit = time.Minute

// reached waits until the clock of the new store has reached the time at which the next part of a
// copy was written, because Spanner refuses a time in the future.
func reached(ctx context.Context, to Store, c rule.LogCopy) error {
	newest := c.Snapshot.At
	for _, segment := range c.Next {
		newest = slices.MaxFunc([]time.Time{newest, segment.At}, time.Time.Compare)
	}
	for {
		now, err := to.Get(ctx, c.ID.Election)
		if err != nil {
			return err
		}
		switch ahead := newest.Sub(now.Now); {
		case ahead <= 0:
			return nil
		case ahead > aheadLimit:
			return fmt.Errorf("it was written %v later than the new store's clock shows, because the old one's is ahead: move again after that time", ahead.Round(time.Second))
		default:
			select {
			case <-time.After(ahead):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// differs returns the error for a log that differs in the new store.
func differs(id rule.LogID) error {
	return &leadership.Error{Code: leadership.RecordCorrupt, Detail: fmt.Sprintf(
		"the %s of election %q is not the same in the two stores: the new one has something else in its place; move to another store", id.Kind, id.Election)}
}

// samePart compares the last segment that was copied before with its original.
func samePart(ctx context.Context, from, to Store, id rule.LogID, after leadership.Index) error {
	if after == 0 {
		return nil
	}
	there, err := to.Segments(ctx, id, after-1, 1)
	if err != nil {
		return err
	}
	old, err := from.Segments(ctx, id, after-1, 1)
	if err == nil && len(there) > 0 && len(old) > 0 && !sameSegment(there[0], old[0]) {
		err = differs(id)
	}
	return err
}

func sameLog(ctx context.Context, from, to Store, c rule.LogCopy) error {
	head, err := to.Look(ctx, c.ID)
	snapshot, err2 := to.Snapshot(ctx, c.ID)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if head.Text != c.Text || head.Body != c.Body || !sameSegment(snapshot, c.Snapshot) {
		return differs(c.ID)
	}
	if err := to.Trim(ctx, c.ID, c.Snapshot.Last); err != nil { // entries that were copied before this snapshot was put
		return err
	}
	for after := c.Snapshot.Last; ; {
		old, err := from.Segments(ctx, c.ID, after, leadership.MaxBatch)
		if err != nil {
			return err
		}
		there, err := to.Segments(ctx, c.ID, after, leadership.MaxBatch)
		if err != nil {
			return err
		}
		n := min(len(old), len(there)) // stores may return pages of different sizes
		switch {
		case len(old)+len(there) == 0:
			return nil
		case n == 0 || !slices.EqualFunc(old[:n], there[:n], sameSegment):
			return differs(c.ID)
		}
		after = old[n-1].Last
	}
}

// sameSegment compares segments with the precision of all stores.
func sameSegment(a, b rule.Segment) bool {
	return a.First == b.First && a.Last == b.Last && a.Data == b.Data && a.At.Sub(b.At).Abs() <= time.Microsecond
}
