// Package client is the Go SDK for agents. Beside the standard library it imports Regent's own
// types, golang.org/x/sys and github.com/go-json-experiment/json, and no cloud or router package.
//
// # Leading
//
// Client.Run campaigns for an election, calls a function while this process leads, and releases the
// lease when the function has returned:
//
//	c, err := client.New(client.Config{Server: "https://regent.example.com"})
//	...
//	err = c.Run(ctx, "reports", func(ctx context.Context, l *client.Lease) error {
//		return write(ctx, l.Token())
//	})
//
// Campaign and TryAcquire return the Lease instead. A Lease is renewed until it is lost or
// resigned, or until it could not be renewed before its deadline:
//
//	               a renewal is answered: the deadline moves on
//	                       +------+
//	                       v      |
//	campaign --grant--> valid ----+
//	                       |
//	                       +--> ErrLost      the server says that another candidate may lead,
//	                       |                 or that the policy has ended the term: ErrDeposed
//	                       +--> ErrExpired   the deadline has passed; a *TermError if it was that
//	                       |                 of the term
//	                       +--> ErrResigned
//
// The deadline is leadership.Deadline: counted from before the request was sent, on a clock that
// runs while the machine sleeps, less an allowance for drift and for the time it takes to stop. It
// is compared with the clock whenever the Lease is asked, and only an answer moves it on.
// StoreUnavailable and OutcomeUnknown are retried until then; LeaseLost ends the lease at once,
// unless it tells of a new epoch. A leader that asks its Lease never believes that it leads after
// the lease has ended in the store, as long as its clock loses no more than one part in a thousand.
//
// The leases of a Client, and of the clients that As returns, are renewed together: a process that
// leads 100 elections sends one call in each period, up to 100 leases in one. To that end a lease
// is renewed up to a tenth of its duration before its time, and never after it. Each has its own
// deadline and its own answer, and none waits for another. A lone lease goes by itself; so does one
// whose last renewal has failed, and each of them for ten minutes if a server takes no batches. A
// batch has the values of the context of one of its leases.
//
// # The term
//
// Operators and the election's policy may end a term. They do it by an instant that no renewal
// passes, so a leader that stops at its deadline obeys them without more. Lease.EndsBy returns that
// instant and its reason, and Config.OnNotice is called when it changes. Lease.Report says what the
// leader does, for readers and for the policy; a report never costs the lease. Lease.StepDown ends
// a term with a reason, and Lease.RequestApproval asks for more of it.
//
// A new epoch changes the token of a lease that goes on: orders from before an operator's
// checkpoint are stale then. The server refuses the next renewal, and names the new token. The
// lease is renewed under that at once, and once this is answered, Lease.Token returns it, with
// NoticeNewEpoch. Until then the old deadline counts; without an answer the lease expires. The
// leader's function goes on and is not called again. A fence that was given the old token as a
// value keeps it, and what it writes is refused: read Lease.Token for each piece of work that may
// begin after a checkpoint.
//
// # Who leads, and who follows
//
// Candidate.Priority, Capabilities and Load say what the candidate is worth, where the election's
// policy asks for it: see leadership.Rank. A better candidate may end the term of a leader that the
// policy lets it preempt, with NoticeHandOver; NoticeGoesOn says that it has gone again.
//
// Member keeps a program a member of an election: it tells the server which token it follows. With
// Candidate.AwaitFollowers Run calls its function only once so many members follow the new token,
// so that no follower still obeys the former leader when the new one begins.
//
// # Tokens
//
// A request that was sent just before may still arrive later. Send the Token with each write, and
// have it compared where the write arrives: package fence does that for Firestore, Spanner, SQL,
// Cloud Storage and HTTP.
//
// Package clienttest is a server in memory for tests, in real time or in a testing/synctest bubble.
//
// # Calling a server
//
// A Client also has the methods of a leadership.Service, with the same errors: errors.Is(err,
// leadership.LeaseHeld) is true here exactly when it is in the server, and errors.As finds the
// *leadership.Error with the reason, the wait and the election as it was found.
//
// Errors of the network are divided in the way that matters to a leader. StoreUnavailable: nothing
// was done, because the server was not reached or the call changes nothing. OutcomeUnknown: the
// request may have arrived but the answer did not, so it may have been carried out; the same call
// again finds out. These methods do not retry.
//
// A success is believed only if it answers the call: it must be about the election asked for and,
// where the caller must hold the lease, name this candidate and this token. Any other success is an
// OutcomeUnknown, or a StoreUnavailable if the call changes nothing.
//
// Watch and Observe are loops over events. They do retry: they reconnect and resume after any
// failure of the network.
//
// To count a deadline yourself, use leadership.Deadline, and read the clock before the call, not
// after it.
package client
