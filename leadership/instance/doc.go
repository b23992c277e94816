// Package instance is one serving process of Regent: the protocol, and what lets thousands of
// agents share it.
//
//	            agents
//	               |
//	+--------------v------------------------------------------------+
//	| Instance                                                      |
//	|   acquire, and wait --> queue --+                             |
//	|   renew, release, ... ----------+--> leadership.Service --> store
//	|   read -------------> cache ----+         |                   |
//	|                         ^                 | what it committed |
//	|   watch <--- hub <------+---- hear <------+-----> relay ------+--> topic
//	|                         |      ^                              |      |
//	|   expiry (leases that   |      +------------------------------+------+
//	|   run out unseen) ------+          what others committed      |
//	+---------------------------------------------------------------+
//
// The store decides, and nothing else: what an instance keeps in memory saves questions, and says
// when to ask one. Several instances on one store know nothing of each other but the events that
// they hear.
//
// # What an instance costs the store
//
//	a grant, a renewal, a release      what it costs without an instance
//	readers of one election            one read in each expiry of the cache, while anybody reads
//	watchers                           nothing while events come; to begin with, three reads at most for all who come together
//	candidates that wait               one attempt for each instance and change of leader; and one look in a lease, while the leader renews elsewhere
//	a held election that is idle       nothing
package instance
