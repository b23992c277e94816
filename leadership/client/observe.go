package client

import (
	"context"
	"iter"

	"regent/leadership"
)

// Observe tells who leads an election: first how it is, as an event without a Type, and then each event as it happens, once, in order and without
// a gap. A connection that breaks is made again, and what happened meanwhile told; see Watch, which Observe is for one election, and which
// says what can end it. An election that was never seen tells nothing until it is.
func (c *Client) Observe(ctx context.Context, election leadership.Election) iter.Seq2[leadership.Event, error] {
	return func(yield func(leadership.Event, error) bool) {
		if election == "" { // which to Watch means all
			yield(leadership.Event{}, invalid("election", "%v", election.Validate()))
			return
		}
		for news, err := range c.Watch(ctx, WatchRequest{Election: election}) {
			var event leadership.Event
			switch {
			case news.Event != nil:
				event = *news.Event
			case news.Lease != nil:
				event = standing(*news.Lease)
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

// standing tells how an election is in the words of an event.
func standing(l leadership.Lease) leadership.Event {
	return leadership.Event{Election: l.Election, Revision: l.Revision, At: l.ReadAt, LeaderID: l.LeaderID, Token: l.Token}
}
