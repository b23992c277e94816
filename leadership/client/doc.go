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
// Operators and the election's policy may end a term. They set an instant past which no renewal
// extends the lease, so a leader that only obeys its deadline obeys them, too. Lease.EndsBy returns
// that instant and its reason, and Config.OnNotice is called when it changes. Lease.Report tells
// readers and the policy about the leader's work; a refused report never costs the lease.
// Lease.StepDown ends a term with a reason, and Lease.RequestApproval asks operators to extend it.
//
// An election that loses the quorum that its policy asks for becomes read-only: its leader keeps
// the lease, but must not write. If Config.OnNotice is set, the leader watches such an election and
// gets NoticeReadOnly and NoticeWritable; Lease.ReadOnly returns the last state.
//
// An operator may begin a new epoch: the lease goes on under the next token, and work begun before
// is stale. The server refuses the next renewal and names the new token. The lease is renewed under
// that at once; after the answer Lease.Token returns the new token, with NoticeNewEpoch. Until then
// the old deadline counts; without an answer the lease expires. The leader's function continues and
// is not called again. A fence that holds the old token by value keeps it, and its writes are
// refused: read Lease.Token anew for each piece of work.
//
// # Who leads, and who follows
//
// Candidate.Priority, Capabilities and Load rank the candidate if the election's policy uses them:
// see rule.Rank. If the policy allows preemption, a better candidate may end a leader's term, with
// NoticeHandOver; NoticeGoesOn says that the candidate has gone again.
//
// Member keeps a program a member of an election: it tells the server which token it follows. With
// Candidate.AwaitFollowers Run calls its function only once that many members follow the new token,
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
// Lease.HandOver returns when the successor is ready; then end the work as usual. Run does all of
// it when its context ends, and waits at most 3 s for the successor: see Run and NoHandOver. After
// one second in line a candidate also watches the election's events, to hear that it was named; if
// it may not, it hears of it when its wait is over, within a minute. No failure at any point lets a
// leader believe beyond its deadline: from the yield on the leader's lease counts as over, and the
// successor's begins with its own grant. If no successor is ready, the lease is released. If an
// operator or a better candidate ends the term, the successor is named in the same way, and
// Lease.Succession returns it: a leader that resigns early lets it take over at once.
//
// If the election's policy has promotion, Config.OnPromotion prepares a new leader before the
// election may be written to.
//
// # What a leader leaves behind
//
// Lease.Checkpoint keeps up to 64 KiB for the next leader. If Candidate.Inherit is set, the next
// leader gets them with its grant, from Lease.Inherited, and no later checkpoint of the former
// leader can follow. For work that must not be done twice, call Lease.BeginEffect before it and
// Lease.FinishEffect after it: a later leader learns that it was done, or that it is in doubt, as
// Lease.InDoubt lists with the grant. Lease.Journal opens a log that only the present leader can
// append to; entries are durable once Append returns. Client.Follow is a loop over it, for any
// process: each index once, in order, whichever instance serves it.
//
// # What a leader is asked
//
// Client.Propose asks the leader of an election for a decision, and waits for it. With
// Candidate.HearProposals and Config.OnNotice set, a leader watches its election and gets
// NoticeAsked when there are proposals: it reads them with Client.Proposals, and decides each for
// good with Lease.Decide. A notice may get lost unless the proposer asks again, so a leader should
// also read the proposals now and then, and at first: Lease.OpenProposals has those from before its
// term.
//
// # Leases that stand on others
//
// Candidate.Via is a lease of the same process that the new one stands on: for example, the leader
// of the world must also lead its region. The SDK names it in each call, and the new lease ends
// with it at the latest, which is checked whenever the new lease is asked. Lease.Delegate makes an
// election for a part of the leader's task, whose leases end with this one by the store's clock;
// Client.Tree reads them all.
//
// # Tokens
//
// A request that was sent just before the deadline may arrive after it. Send the Token with each
// write, and have it compared where the write arrives: package fence does that for Firestore,
// Spanner, SQL, Cloud Storage and HTTP.
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
