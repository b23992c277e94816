package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/instance/internal/view"
)

// Get reads an election from the store, strongly; see service.Service.
func (i *Instance) Get(ctx context.Context, e leadership.Election) (leadership.Lease, error) {
	reading, err := i.Read(ctx, leadership.ReadRequest{Election: e, Strong: true})
	return reading.Lease, err
}

// Read reads an election, from the cache if the request allows it; see Hub.Read of package hub.
func (i *Instance) Read(ctx context.Context, r leadership.ReadRequest) (leadership.Reading, error) {
	if err := r.Election.Validate(); err != nil {
		_, err := i.service.Get(ctx, r.Election) // which says it in its own words
		return leadership.Reading{}, err
	}
	return i.hub.Read(ctx, r)
}

// Await waits, at most so long, until the election differs from what the reader knows, and reads
// it. news is false if the time is over first and a Read would show nothing new. Errors are those
// of Read, and the cause of Drain.
func (i *Instance) Await(ctx context.Context, r leadership.ReadRequest, wait time.Duration) (reading leadership.Reading, news bool, err error) {
	if r.Strong || !i.hub.Current(r.Election, r.Known) {
		if reading, news, err = i.news(ctx, r); err != nil || news {
			return reading, news, err
		}
	}
	watch := i.hub.Watch(r.Election, r.Known)
	defer watch.Close()
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	switch _, err := watch.Next(waiting); {
	case err == nil:
		r.Known = watch.After()
		reading, err := i.Read(ctx, r)
		return reading, err == nil, err
	case waiting.Err() == nil || ctx.Err() != nil:
		return leadership.Reading{}, false, err
	case !r.Strong && i.hub.Current(r.Election, r.Known):
		return leadership.Reading{}, false, nil
	}
	return i.news(ctx, r) // it is not known here that nothing has come
}

// news reads an election, and reports whether it is another than the reader knows.
func (i *Instance) news(ctx context.Context, r leadership.ReadRequest) (leadership.Reading, bool, error) {
	reading, err := i.Read(ctx, r)
	if err == nil {
		reading, err = i.settle(ctx, r, reading)
	}
	return reading, err == nil && reading.Revision > r.Known, err
}

// settle records the end of a lease that has run out unseen, so that it gets a revision, and
// arranges that the end of one that lasts is recorded.
func (i *Instance) settle(ctx context.Context, r leadership.ReadRequest, reading leadership.Reading) (leadership.Reading, error) {
	if reading.Lapsed {
		asked := i.now()
		l, err := i.service.Expire(ctx, r.Election)
		if err != nil {
			return leadership.Reading{Lease: l}, err
		}
		i.hub.Learn(&l, view.Read, asked)
		reading = leadership.Reading{Lease: l}
	}
	i.hub.Follow(reading.Lease)
	return reading, nil
}

// Watch returns a watch on the events of one election, to be closed by its owner, and the election
// as it was a moment ago; see package hub. Of one that was never seen, and may come yet, the
// reading has no revision; a deleted one can be watched too. With r.Member, that is a follower of
// the election while the watch is open, and follows the token of the last event that the watch has
// returned. Errors: RevisionMismatch if the election has not come to the revision to resume from;
// LimitExceeded if there is no room for the member; those of Read.
func (i *Instance) Watch(ctx context.Context, r leadership.WatchRequest) (leadership.Reading, *hub.Watch, error) {
	reading, err := i.found(ctx, leadership.ReadRequest{Election: r.Election, Known: r.After})
	if err != nil {
		return reading, nil, err
	}
	after, seen := reading.Revision, reading.Token
	if r.Resume {
		after, seen = r.After, 0
	}
	members, err := i.accompany(ctx, r, seen)
	if err != nil {
		return reading, nil, err
	}
	watch := i.hub.Watch(r.Election, after)
	watch.Tell(members)
	if !r.Resume {
		watch.Seen(reading.Lease)
	}
	return reading, watch, nil
}

// found reads an election that may be deleted, or may not exist yet.
func (i *Instance) found(ctx context.Context, r leadership.ReadRequest) (leadership.Reading, error) {
	reading, err := i.Read(ctx, r)
	var refusal *leadership.Error
	switch {
	case err == nil:
		return i.settle(ctx, r, reading)
	case !errors.As(err, &refusal) || refusal.Code != leadership.NotFound:
		return reading, err
	case refusal.Lease != nil:
		reading.Lease = *refusal.Lease
	}
	if r.Known > reading.Revision {
		return reading, &leadership.Error{Code: leadership.RevisionMismatch, Detail: fmt.Sprintf(
			"election %q has not come to revision %d, but to %d; begin with how things are", r.Election, r.Known, reading.Revision)}
	}
	return reading, nil
}

// Feed returns a feed of the events of many elections, to be closed by its owner; see package hub.
// InvalidArgument is for a selection that no name is in, and for a cursor that this store has not
// come to.
func (i *Instance) Feed(ctx context.Context, which leadership.Selection, after hub.Cursor) (*hub.Feed, error) {
	if err := which.Validate(); err != nil {
		return nil, err
	}
	if err := i.refuseFuture(ctx, after); err != nil {
		return nil, err
	}
	return i.hub.Feed(ctx, which, after)
}

// refuseFuture refuses the cursor of another store that is ahead of this one: the feed would be
// silent until this store's clock reached it. The store is asked for its time only if the cursor is
// later than the last known time.
func (i *Instance) refuseFuture(ctx context.Context, after hub.Cursor) error {
	if last := i.storeTime.Load(); last != nil && !after.After(*last) {
		return nil
	}
	now, err := i.service.Now(ctx)
	if err != nil {
		return err
	}
	i.storeTime.Store(&now)
	if after.After(now) {
		return &leadership.Error{Code: leadership.InvalidArgument, Field: "after", Detail: fmt.Sprintf(
			"the cursor %v lies after the time of this store, %s: it is another store's; leave it out to begin with how things are", after, now.UTC().Format(time.RFC3339))}
	}
	return nil
}
