package test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"regent/emulators"
	"regent/leadership"
	"regent/test/lockset"
)

// updates is how many the lock test makes with a fencing token, and half of it in each manner without one.
var updates = flag.Int("updates", 800, "how many updates the lock test makes")

// Five processes take turns by leases of two seconds to change sets, and every five seconds one of them is stopped for three. With the token
// compared in the transaction of each write nothing that was acknowledged is ever lost. How much is without it is what it is: a lease alone promises nothing
// to a leader that does not look, and next to nothing to one that does.
func TestNoUpdateIsLostThatAFencingTokenGuards(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		manner lockset.Manner
		target int
	}{{lockset.Fenced, *updates}, {lockset.Asking, *updates / 2}, {lockset.Trusting, *updates / 2}} {
		t.Run(string(c.manner), func(t *testing.T) {
			acknowledged, lost, pauses := playLockset(t, c.manner, c.target)
			t.Logf("%s: %d of %d updates lost (%.1f %%) in %d pauses", c.manner, lost, acknowledged, 100*float64(lost)/float64(acknowledged), pauses)
			switch {
			case c.manner == lockset.Fenced && lost > 0:
				t.Errorf("%d updates were acknowledged under a fencing token, and lost", lost)
			case c.manner == lockset.Trusting && lost == 0:
				t.Error("no update was lost by leaders that trust their lease: this test would notice nothing")
			}
		})
	}
}

const (
	lockMembers = 5
	lockLease   = 2 * time.Second
	firstPause  = 2 * time.Second
	pauseEvery  = 5 * time.Second
	pauseFor    = 3 * time.Second
	locks       = 120 // elections, side by side
)

// playLockset makes that many updates, and returns how many were acknowledged and how many of these are in no set.
func playLockset(t *testing.T, manner lockset.Manner, target int) (acknowledged, lost, pauses int) {
	host, project := emulators.Firestore(t), emulators.Name(t)
	s := inBolt(t).serve(t)
	var members []*lockset.Member
	seen := make(chan lockset.Update)
	var listening sync.WaitGroup
	for i := range lockMembers {
		m := lockset.Start(t, lockset.Config{
			Manner: manner, Server: s.URL, Project: project, Elections: locks,
			Candidate: leadership.CandidateID(fmt.Sprintf("member-%d", i+1)), Number: int64(i + 1), Lease: lockLease, Think: lockLease,
		}, "FIRESTORE_EMULATOR_HOST="+host)
		members = append(members, m)
		listening.Go(func() {
			for u := range m.Updates() {
				seen <- u
			}
		})
	}
	go func() {
		listening.Wait()
		close(seen)
	}()
	all := map[leadership.Election][]int64{}
	pause := time.NewTimer(firstPause)
	defer pause.Stop()
	var paused *lockset.Member
	var resume <-chan time.Time
	for open := true; open; {
		select {
		case u, ok := <-seen:
			if open = ok; !ok {
				break
			}
			all[u.Election] = append(all[u.Election], u.Element)
			if acknowledged++; acknowledged == target {
				pause.Stop()
				for _, m := range members {
					m.Resume()
					m.End()
				}
			}
		case <-pause.C:
			paused = members[rand.IntN(len(members))]
			if err := paused.Pause(); err != nil {
				t.Fatalf("%v: %s", err, paused.Stderr())
			}
			pauses++
			pause.Reset(pauseEvery)
			resume = time.After(pauseFor)
		case <-resume:
			paused.Resume()
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
	for _, m := range members {
		if text := m.Stderr(); text != "" {
			t.Errorf("a member says: %s", text)
		}
	}
	return acknowledged, missing(t, host, project, all), pauses
}

// missing counts what is in no set.
func missing(t *testing.T, host, project string, all map[leadership.Election][]int64) (lost int) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+host, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	sets, err := firestore.NewClient(t.Context(), project, option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	defer sets.Close()
	for election, acknowledged := range all {
		elements, err := lockset.Read(t.Context(), sets, election)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(elements)
		for _, element := range acknowledged {
			if _, ok := slices.BinarySearch(elements, element); !ok {
				lost++
			}
		}
	}
	return lost
}
