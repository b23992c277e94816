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
//	                       +--> ErrOrphaned  the lease that it stands on has ended
//	                       +--> ErrResigned
//
// The deadline is leadership.Deadline: counted from before the request was sent, on a clock that
// runs while the machine sleeps, less an allowance for drift and for the time it takes to stop. It
// is compared with the clock whenever the Lease is asked, and only an answer moves it on.
// StoreUnavailable and OutcomeUnknown are retried until then; LeaseLost ends the lease at once,
// unless it tells of a new epoch. A leader that asks its Lease never believes that it leads after
// the lease has ended in the store, as long as its clock loses no more than one part in a thousand.
//
// Client.Resume goes on with a lease in another process, by its Handle.
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
// An election that loses the quorum that its policy asks for becomes read-only: its leader goes on,
// and must not write. With a Config.OnNotice it watches such an election, hears of that, and of the
// end of that, by NoticeReadOnly and NoticeWritable, and Lease.ReadOnly returns what it heard last.
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
// policy asks for it: see rule.Rank. A better candidate may end the term of a leader that the
// policy lets it preempt, with NoticeHandOver; NoticeGoesOn says that it has gone again.
//
// Member keeps a program a member of an election: it tells the server which token it follows. With
// Candidate.AwaitFollowers Run calls its function only once so many members follow the new token,
// so that no follower still obeys the former leader when the new one begins.
//
// # Handing over
//
// A leader that is about to end can let its successor get ready first, so that there is no vacancy:
//
//	leader     HandOver(ctx, "") ------- leads on ------+ stops, Resign: yields
//	                |                                   |        |
//	            "handingOver"                        "ready"  "yielded"
//	                v                                   |        v
//	successor  waits: OnSuccession loads its state -----+   acquires at once, with the next token
//
// Lease.HandOver returns when the successor is ready; end the work then as ever. Run does all of it
// when its context ends, and waits 3 s at most for the successor: see Run and NoHandOver. A waiting
// candidate watches the election's events beside its call, from the second on that it waits, to
// hear that it was named; where it may not, it hears of it when its wait is over, within a minute.
// Whoever fails at any point, no belief goes beyond its deadline: from the yield on the leader's
// lease counts as over, and the successor's begins with its own grant. Without a successor that is
// ready the lease is released. Where an operator or a better candidate ends the term, the successor
// is named so, too, and Lease.Succession tells of it: a leader that resigns early lets it take over
// at once.
//
// Where the election's policy has promotion, Config.OnPromotion prepares a new leader before the
// election may be written to.
//
// # What a leader leaves behind
//
// Lease.Checkpoint keeps up to 64 KiB for the next leader, which has them from Lease.Inherited if
// Candidate.Inherit is set: with its grant, and so that no late checkpoint of the former leader can
// follow. Lease.BeginEffect notes what must not be done twice before the leader does it, and
// Lease.FinishEffect that it is done: a later leader is told so, or that it is in doubt, as
// Lease.InDoubt lists with the grant. Lease.Journal opens a log that only the present leader can
// append to; what Append returns as done is durable. Client.Follow is a loop over it, for any
// process: each index once, in order, whichever instance serves it.
//
// # What a leader is asked
//
// Client.Propose asks the leader of an election for a decision, and waits for it. With
// Candidate.HearProposals and a Config.OnNotice a leader watches its election, and hears by
// NoticeAsked that there are proposals: it reads them by Client.Proposals, and decides by
// Lease.Decide, once and for good. A notice may get lost if no proposer asks again; so a leader
// also looks now and then, and at first: Lease.OpenProposals has those from before its term.
//
// # Leases that stand on others
//
// Candidate.Via is a lease of the same process that the new one stands on: a regional leader that
// leads the world, too. The SDK names it in each call, and the new lease ends with it at the
// latest, checked whenever the new one is asked. Lease.Delegate makes an election for a part of the
// leader's task, whose leases end with this one by the store's clock; Client.Tree reads them all.
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
// A Client also has the methods of a service.Service, with the same errors: errors.Is(err,
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
