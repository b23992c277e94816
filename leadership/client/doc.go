// Package client is Regent for agents in Go. Beside the standard library it needs golang.org/x/sys and
// github.com/go-json-experiment/json, and nothing else that is not part of Regent.
//
// # To lead
//
// Client.Run campaigns for an election, calls a function while this process leads, and gives the lease back when the function has returned:
//
//	c, err := client.New(client.Config{Server: "https://regent.example.com"})
//	...
//	err = c.Run(ctx, "reports", func(ctx context.Context, l *client.Lease) error {
//		return write(ctx, l.Token())
//	})
//
// Campaign and TryAcquire return the Lease instead. A Lease is renewed until it is lost, resigned, or could not be renewed before its deadline:
//
//	               a renewal is answered: the deadline moves on
//	                       +------+
//	                       v      |
//	campaign --grant--> valid ----+
//	                       |
//	                       +--> ErrLost      the server says that somebody else may lead
//	                       +--> ErrExpired   the deadline has come first
//	                       +--> ErrResigned
//
// The deadline is leadership.Deadline: counted from before the request left, by a clock that runs while the machine sleeps, with room for drift and for
// the time that it takes to stop. It is compared whenever the Lease is asked, and only an answer moves it on. StoreUnavailable and
// OutcomeUnknown are tried again until it comes; LeaseLost ends the lease at once. No leader that asks its Lease believes that it leads after the
// lease has ended in the store, as long as its clock loses no more than one part in a thousand.
//
// What it did just before it was stopped may arrive later all the same. Send the Token with each write, and have it compared where the write
// arrives: package fence does that for Firestore, Spanner, SQL, Cloud Storage and HTTP.
//
// Package clienttest is a server in memory for tests, in real time or in a bubble of testing/synctest.
//
// # To call a server
//
// A Client also has the methods of a leadership.Service, and its errors are the same: errors.Is(err, leadership.LeaseHeld) is true here
// exactly when it is in the server, and errors.As finds the *leadership.Error with the reason, the wait and the election as it was found.
//
// What the network adds is told apart in the way that matters to a leader. StoreUnavailable: nothing was done, for the server was not
// reached, or the call would have changed nothing anyway. OutcomeUnknown: the request may have arrived and the answer did not, so
// that it may have been done; the same call again finds out. These methods do not make a call again by themselves.
//
// A success is believed only if it answers the call: it is about the election asked for and, where the caller was to hold its lease, says so of
// this candidate and this token. Any other is an OutcomeUnknown, or a StoreUnavailable where nothing could be changed.
//
// A Watch, and an Observe, is a loop over what happens that does try again by itself: a Client's answer to whatever the network does to
// a connection that is meant to last.
//
// Whoever counts a deadline by hand uses leadership.Deadline, and reads the clock before the call, not after it.
package client
