// Package instance is one serving process of Regent: the protocol, and what lets thousands of
// agents share it.
//
//	                 agents
//	                   |
//	+------------------v-----------------------------------------------+
//	| Instance                                                         |
//	|   acquire, with a wait ----> line ---+                           |
//	|   renew, release, ... ---------------+---> service.Service ---+---> store
//	|                               |      ^          |                |
//	|                         reads |      | looks    | what it said,  |
//	|                               v      |          | and committed  |
//	|   read, watch, feed -------> hub and view <-----+                |
//	|                                   ^             |                |
//	|                   what others     |             v                |
//	|                   committed       +---------- outbox ------------+---> topic
//	|                                   |                              |      |
//	|                                   +------------------------------+------+
//	+------------------------------------------------------------------+
//
// # Who is authoritative for what
//
//	store     everything. An instance's memory only saves reads, and says when to read
//	view      this instance's knowledge of each election: leader, newest revision, head of the
//	          journal, the age of these, and when to look again. The other parts read it there
//	hub       locks the view, wakes waiting callers, and makes the looks that the view asks for
//	line      the order in which the store is asked for this instance's candidates
//	outbox    the events that were committed and not announced yet
//	renewals  when a renewal is sent, and together with which others
//	members   the members of this instance and, as far as it hears, of the others; see there
//	journals  a window on the newest entries of a journal, shared by its streams
//	topic     nothing: a message is a hint that the store has more
//
// Instances on one store learn of each other only by events and, over a second topic
// (Config.Members), by sheets: each tells its members, and which leases it renews, so that no other
// instance looks at the ends of these. All of that is in memory, and costs the store nothing. The
// sheets carry a MAC by the shared secret of the store (Sealed); a message without it is counted
// and dropped.
//
// # When sheets of members do not arrive
//
// Then an instance knows only its own members, and says so (Members.Complete, CannotHearMembers).
// The members of the others count for another 40 s. Of an electorate it then counts the members
// that it knows: in a minority no candidate is granted, and writers are refused
// (leadership.ReadOnly) after the grace time. That is a policy and may be wrong in either
// direction; the store alone keeps leaders apart.
//
// A member that was never heard of counts as absent since the instance began, and the grace time
// runs from the grant at the earliest. An instance that begins asks the others for their members,
// and has heard of them within two seconds.
//
// # Followers of a journal
//
// All streams of one journal at an instance share one follow. It looks at the journal's head now
// and then, and reads new entries once for all, into a window of 1024 entries and 1 MiB. A stream
// that begins before the window, or falls behind it, reads the store by itself until it reaches the
// window. An append at this instance wakes the follow at once; an append at another instance is
// told by the sheets of members within 0.1 s. If these are lost, the next look finds the entries:
// after 16 s to 31 s, or 1 s while sheets are not heard.
//
//	appends, and other       wake     +--------+    window    streams here
//	instances' sheets   ------------> | follow | ---------->  each gets every index
//	                                  +--------+              once, in order
//	              head, now and then     |    ^ new entries, once
//	                                     v    |
//	                                     store
//
// A reader that names itself (JournalRequest.Member) is a member while its stream is open, or for
// 30 s after a page. How far it has applied the journal is in the sheets, so every instance can say
// which members lag, and AwaitAcknowledgement can wait for them.
//
// # What an instance costs the store
//
//	a grant, a release              what it costs without an instance
//	renewals                        the same or, of those that come while one is under way, up
//	                                to a hundred for the price of one; see package renewals
//	readers of one election         one read in each cache expiry, while it is read
//	watchers                        to begin with, three reads at most for all that come
//	                                together; then nothing while events come, but up to 14
//	                                looks in an hour at a lease that is renewed through
//	                                another instance
//	candidates that wait            one attempt for each instance and change of leader; and
//	                                one look in a lease while the leader renews through
//	                                another instance
//	a call without a wait, if the   what it costs without a quorum, if the election is in memory;
//	election has a quorum           one read more otherwise
//	candidates that an order bars   one attempt for each of them, or one for all if it bars all,
//	                                and event of an order
//	a lease that another instance   nothing, while sheets tell that it was renewed; when
//	renews, with candidates here    they stop, one look at the end that was told last
//	members                         one read in each cache expiry of an election that is joined or
//	                                whose members are read
//	a hand-over                     the leader's and the successor's calls, and one attempt for
//	                                the successor; no other candidate is asked for
//	candidates of an election       one attempt for each instance after 1, 2, 4 ... 30 s, and when
//	whose parent has no leader      the parent has one
//	a journal that is followed      one look at its head in 16 s to 31 s for each instance, or
//	                                in a second while sheets of members are not heard, and one
//	                                read of new entries; two reads at most for a stream that
//	                                begins
//	a held election that is idle    nothing
package instance
