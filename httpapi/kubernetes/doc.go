// Package kubernetes serves elections as Leases of coordination.k8s.io/v1, so that programs that
// elect their leader through a Lease (client-go, controller-runtime, other languages' clients) and
// kubectl work with a Regent server unchanged.
//
// A Lease NAMESPACE/NAME is the election k8s.NAMESPACE.NAME, which all doors see. The server
// decides: it takes the holder's identity, the lease duration, labels and annotations from a
// client, and its times and transitions from the store. leaseTransitions is the fencing token less
// one, as far as an int32 goes; the annotation regent/fencing-token has all of it.
//
// # What a write means
//
//	holder wanted | the store says            | call of the service, or the answer
//	--------------+---------------------------+-----------------------------------------
//	none          | vacant                    | none; 409 for another version
//	none          | held by this caller       | Release; 409 for another version
//	none          | held by another one       | 403
//	X             | held by X for this caller | Renew; and Acquire for other labels
//	              |                           | or a longer duration; 409 once the term must
//	              |                           | end before the duration would
//	X             | held by X for another one | 403
//	X             | held by Y                 | 409, whatever the client's clock says
//	X             | vacant                    | Acquire; 409 for another version; 422 if no term
//	              |                           | lasts as long as the wanted duration
//
// A client counts its duration from each answer that it takes for a grant or a renewal, and knows
// no other end. So no such answer is sent if the lease would end earlier than that.
//
// The read before a write only chooses the call. The store's transaction decides it, by the key and
// the token of the lease.
//
// The key of a holder never leaves the server: it is derived from the secret of the store, the
// principal, the election and the holder's identity. So any instance can renew, also after a
// restart, and no other principal can.
//
// # Versions
//
// A resource version is an instant of the store's clock in microseconds. The version of a Lease, in
// every answer and event, is its last heartbeat; of a vacant Lease, the end of the last lease or
// the last configuration, whichever is later. A write with another version is refused. A watch
// reports every change; a renewal is not a change.
//
// No Lease in a list has a later version than the list, and no Lease in a watch has a later one
// than the next bookmark. The instance may not have heard yet of an earlier change of another
// Lease: its feed is complete only up to the feed's cursor. So a watch of several Leases that
// resumes begins 35 minutes before the version that the client names. A feed's cursor is further
// behind only while the store cannot be read, and then the versions in a watch stay within 35
// minutes of the cursor. A client may get a change twice, and misses none.
package kubernetes
