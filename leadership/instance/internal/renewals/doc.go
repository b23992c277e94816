// Package renewals sends renewals that come at about the same time to the store together.
//
// A cloud store takes one request for a hundred renewals: one statement and one commit on Spanner,
// one BatchWrite on Firestore. Leaders renew one lease each, so an instance gathers:
//
//	renewals    r1      r2 r3       r4 r5 r6          r7
//	             |       |  |        |  |  |           |
//	batches      [--r1---][--r2,r3---][---r4,r5,r6---] [--r7--]
//
// A renewal that comes while no batch is under way is sent at once, alone. One that comes
// meanwhile waits for the next batch. The next batch is sent
//
//   - when the newest one is answered, or
//   - when the newest one has taken 250 ms, so that no renewal waits long for one that is stuck, or
//   - when it is full.
//
// So a renewal waits 250 ms at most before it is sent. Few batches are stuck at a time: one starts
// every 250 ms, and the store ends each after some seconds.
//
// A batch has each election once; a second renewal goes with the next batch. A renewal never takes
// the answer of one that was sent before it came: its lease would end earlier than its caller
// counts.
package renewals
