package client

import (
	"context"
	"iter"

	"regent/leadership"
)

// Observe yields the leader of an election: first the present state, as an event without a Type,
// and then each event as it happens, once, in order and without a gap. It reconnects without losing
// events. It is Watch for one election; see there for the errors that end it. An election that does
// not exist yields nothing until it does. To hear of its members, too, Watch it with
// WatchRequest.Members; of its seats, with WatchRequest.Of.
func (c *Client) Observe(ctx context.Context, election leadership.Election) iter.Seq2[leadership.Event, error] {
	return func(yield func(leadership.Event, error) bool) {
		if election == "" { // Watch takes "" for all elections
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

// standing returns the state of an election as an event.
func standing(l leadership.Lease) leadership.Event {
	return leadership.Event{Election: l.Election, Revision: l.Revision, At: l.ReadAt, LeaderID: l.LeaderID, Token: l.Token}
}
