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
		_, err := i.service.Get(ctx, r.Election) // for the service's error
		return leadership.Reading{}, err
	}
	return i.hub.Read(ctx, r)
}

// Await blocks until the election has a newer revision than r.Known, for at most wait, and reads
// it. news is false if the wait is over first and a Read would show nothing new. Errors: those of
// Read; the cause of Drain.
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
	return i.news(ctx, r) // there may be news that this instance has not heard of
}

// news reads an election, and reports whether it is newer than the reader knows.
func (i *Instance) news(ctx context.Context, r leadership.ReadRequest) (leadership.Reading, bool, error) {
	reading, err := i.Read(ctx, r)
	if err == nil {
		reading, err = i.settle(ctx, r, reading)
	}
	return reading, err == nil && reading.Revision > r.Known, err
}

// settle records the end of a lease that has run out, so that it gets a revision, and arranges that
// the end of a lease that still lasts will be recorded.
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

// Watch returns a watch on the events of one election, which the caller must close, and the
// election as it was a moment ago; see package hub. Elections that do not exist yet (the reading
// has no revision) or are deleted can be watched, too. With r.Member, that member counts as a
// follower while the watch is open, and follows the token of the last event that the watch has
// returned.
//
// Errors: RevisionMismatch if the election has not reached the revision to resume from;
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

// Feed returns a feed of the events of many elections, which the caller must close; see package
// hub. It returns InvalidArgument for a selection that no name can match, and for a cursor that
// this store has not reached.
func (i *Instance) Feed(ctx context.Context, which leadership.Selection, after hub.Cursor) (*hub.Feed, error) {
	if err := which.Validate(); err != nil {
		return nil, err
	}
	if err := i.refuseFuture(ctx, after); err != nil {
		return nil, err
	}
	return i.hub.Feed(ctx, which, after)
}

// refuseFuture refuses a cursor that is ahead of this store's clock, as one of another store may
// be: the feed would be silent until the clock reached it. It asks the store for its time only if
// the cursor is later than the last known time.
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
