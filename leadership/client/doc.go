// Package client calls a Regent server. It imports nothing but the standard library and Regent's own words.
//
// A Client has the methods of a leadership.Service, and its errors are the same: errors.Is(err, leadership.LeaseHeld) is true here
// exactly when it is in the server, and errors.As finds the *leadership.Error with the reason, the wait and the election as it was found.
//
// What the network adds is told apart in the way that matters to a leader. StoreUnavailable: nothing was done, for the server was not
// reached, or the call would have changed nothing anyway. OutcomeUnknown: the request may have arrived and the answer did not, so
// that it may have been done; the same call again finds out. The client does not make a call again by itself.
//
// A success is believed only if it answers the call: it is about the election asked for and, where the caller was to hold its lease, says so of
// this candidate and this token. Any other is an OutcomeUnknown, or a StoreUnavailable where nothing could be changed.
//
// A Watch is a loop over what happens, and the one thing here that does try again by itself: a Client's answer to whatever the network does to
// a connection that is meant to last.
//
// A lease counts from when its request was sent. Read a clock that runs while the machine sleeps before the call, not after it. One
// that was waited for in line may count from later; see leadership.Grant.
package client
