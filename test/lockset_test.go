package test

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"regent/emulators"
	"regent/leadership"
	"regent/test/lockset"
	"regent/test/machine"
)

// updates is how many updates the lock test makes with a fencing token; it makes half as many
// without one.
var updates = flag.Int("updates", 0, "how many updates the lock test makes; 0 for 800, or 200 with -short")

// Five processes take turns, by leases of two seconds, to change sets, and one after the other is
// stopped until others have overtaken it. With the token compared in the transaction of each write
// no acknowledged update is ever lost. Without it some are, or this test would notice nothing.
func TestNoFencedUpdateIsLost(t *testing.T) {
	machine.Share(t)
	updates := cmp.Or(*updates, machine.Size(200, 800))
	for manner, target := range map[lockset.Manner]int{lockset.Fenced: updates, lockset.Trusting: updates / 2} {
		t.Run(string(manner), func(t *testing.T) {
			machine.Share(t)
			acknowledged, lost, pauses := playLockset(t, manner, target)
			t.Logf("%s: %d of %d updates lost in %d pauses", manner, lost, acknowledged, pauses)
			if (lost == 0) != (manner == lockset.Fenced) {
				t.Errorf("%d updates were acknowledged and lost", lost)
			}
		})
	}
}

const (
	lockMembers = 5
	lockLease   = 2 * time.Second
	locks       = 120 // elections, side by side
)

// playLockset makes that many updates or more, until two pauses are over, and returns how many were
// acknowledged and how many of these are in no set. It stops the member that thinks about most
// sets, and lets it go on once others have changed some of these.
func playLockset(t *testing.T, manner lockset.Manner, target int) (acknowledged, lost, pauses int) {
	const (
		enough  = 3  // sets that others have changed: the member may have been about to tell that it has written one
		between = 20 // updates from one pause to the next
		none    = -1
	)
	host, project := emulators.Firestore(t), emulators.Name(t)
	server, seen := inFile(t).serve(t), make(chan lockset.Update)
	members := make([]*lockset.Member, lockMembers)
	thinks := make([]map[leadership.Election]bool, lockMembers) // each member, about which sets
	var listening sync.WaitGroup
	for i := range members {
		members[i], thinks[i] = lockset.Start(t, lockset.Config{
			Manner: manner, Server: server.URL, Project: project, Elections: locks,
			Candidate: leadership.CandidateID(fmt.Sprintf("member-%d", i+1)), Number: int64(i + 1), Lease: lockLease, Think: lockLease,
		}, "FIRESTORE_EMULATOR_HOST="+host), map[leadership.Election]bool{}
		listening.Go(func() {
			for u := range members[i].Updates() {
				seen <- u
			}
		})
	}
	go func() {
		listening.Wait()
		close(seen)
	}()
	all := map[leadership.Election][]int64{}
	stopped, next, ended := none, between, false
	overtaken := map[leadership.Election]bool{} // that the stopped member thinks about
	for u := range seen {
		who := int(u.Member) - 1
		if u.Element == 0 {
			thinks[who][u.Election] = true
			continue
		}
		delete(thinks[who], u.Election)
		all[u.Election] = append(all[u.Election], u.Element)
		acknowledged++
		switch {
		case stopped != none && who != stopped && thinks[stopped][u.Election]:
			if overtaken[u.Election] = true; len(overtaken) >= enough {
				members[stopped].Resume()
				stopped, next, pauses = none, acknowledged+between, pauses+1
			}
		case stopped == none && acknowledged >= next && !ended:
			most := slices.MaxFunc(thinks, func(a, b map[leadership.Election]bool) int { return len(a) - len(b) })
			if len(most) < 2*enough {
				break
			}
			stopped = slices.IndexFunc(thinks, func(sets map[leadership.Election]bool) bool { return len(sets) == len(most) })
			if err := members[stopped].Pause(); err != nil {
				t.Fatalf("%v: %s", err, members[stopped].Stderr())
			}
			clear(overtaken)
		}
		if acknowledged >= target && pauses >= 2 && stopped == none && !ended {
			ended = true
			for _, m := range members {
				m.End()
			}
		}
	}
	for _, m := range members {
		if text := m.Stderr(); text != "" {
			t.Errorf("a member says: %s", text)
		}
	}
	return acknowledged, missing(t, host, project, all), pauses
}

// missing counts the elements that are in no set.
func missing(t *testing.T, host, project string, all map[leadership.Election][]int64) (lost int) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+host, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	sets, err := firestore.NewClient(t.Context(), project, option.WithGRPCConn(conn))
	require.NoError(t, err)
	defer sets.Close()
	for election, acknowledged := range all {
		elements, err := lockset.Read(t.Context(), sets, election)
		require.NoError(t, err)
		slices.Sort(elements)
		for _, element := range acknowledged {
			if _, ok := slices.BinarySearch(elements, element); !ok {
				lost++
			}
		}
	}
	return lost
}
