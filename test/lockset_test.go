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
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"regent/emulators"
	"regent/leadership"
	"regent/test/lockset"
	"regent/test/machine"
)

// updates is how many updates the lock test makes with a fencing token; it makes half as many in
// each manner without one.
var updates = flag.Int("updates", 0, "how many updates the lock test makes; 0 for 800, or 400 with -short")

// Five processes take turns, by leases of two seconds, to change sets, and one after the other is
// stopped for three seconds or more. With the token compared in the transaction of each write no
// acknowledged update is ever lost. Losses without it are only reported: a lease alone promises
// nothing to a leader that does not check it, and little to one that does.
func TestNoFencedUpdateIsLost(t *testing.T) {
	t.Parallel()
	updates := cmp.Or(*updates, machine.Size(400, 800))
	for _, c := range []struct {
		manner lockset.Manner
		target int
	}{{lockset.Fenced, updates}, {lockset.Asking, updates / 2}, {lockset.Trusting, updates / 2}} {
		if testing.Short() && c.manner == lockset.Asking {
			continue // which promises nothing, and proves nothing of the others
		}
		t.Run(string(c.manner), func(t *testing.T) {
			machine.Share(t)
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
	lockMembers   = 5
	lockLease     = 2 * time.Second
	firstPause    = 2 * time.Second
	betweenPauses = 2 * time.Second
	pauseFor      = 3 * time.Second // at least
	locks         = 120             // elections, side by side
)

// pausing stops one member at a time, the one that thinks about most sets, and lets it go on once
// others have changed some of these.
type pausing struct {
	t        *testing.T
	members  []*lockset.Member
	thinks   []map[leadership.Election]bool // each member, about which sets
	number   int64                          // of the member that is stopped, from 1; 0 for none
	overtook map[leadership.Election]bool   // what it thinks about, and others have changed since
	long     bool                           // it was stopped for pauseFor
	over     int                            // how many pauses have ended
}

// begin stops a member; it returns false if none thinks.
func (p *pausing) begin() bool {
	p.t.Helper()
	most := 0
	for i, sets := range p.thinks {
		if len(sets) > len(p.thinks[most]) {
			most = i
		}
	}
	if len(p.thinks[most]) == 0 {
		return false
	}
	if err := p.members[most].Pause(); err != nil {
		p.t.Fatalf("%v: %s", err, p.members[most].Stderr())
	}
	p.number, p.overtook, p.long = int64(most+1), map[leadership.Election]bool{}, false
	return true
}

// heard takes a line of a member, and ends the pause if it was long enough and others have
// overtaken the paused member.
func (p *pausing) heard(u lockset.Update) (ended bool) {
	const enough = 3 // sets; it may have been about to tell that it has written one
	if u.Element == 0 {
		p.thinks[u.Member-1][u.Election] = true
	} else {
		delete(p.thinks[u.Member-1], u.Election)
	}
	if p.number == 0 {
		return false
	}
	stopped := p.thinks[p.number-1]
	if u.Element != 0 && u.Member != p.number && stopped[u.Election] {
		p.overtook[u.Election] = true
	}
	if !p.long || len(p.overtook) < min(enough, len(stopped)) {
		return false
	}
	p.members[p.number-1].Resume()
	p.number, p.over = 0, p.over+1
	return true
}

// playLockset makes that many updates or more, until two pauses are over, and returns how many were
// acknowledged and how many of these are in no set.
func playLockset(t *testing.T, manner lockset.Manner, target int) (acknowledged, lost, pauses int) {
	host, project := emulators.Firestore(t), emulators.Name(t)
	server, p := inFile(t).serve(t), &pausing{t: t}
	seen := make(chan lockset.Update)
	var listening sync.WaitGroup
	for i := range lockMembers {
		m := lockset.Start(t, lockset.Config{
			Manner: manner, Server: server.URL, Project: project, Elections: locks,
			Candidate: leadership.CandidateID(fmt.Sprintf("member-%d", i+1)), Number: int64(i + 1), Lease: lockLease, Think: lockLease,
		}, "FIRESTORE_EMULATOR_HOST="+host)
		p.members, p.thinks = append(p.members, m), append(p.thinks, map[leadership.Election]bool{})
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
	begin, long := time.NewTimer(firstPause), time.NewTimer(time.Hour)
	defer begin.Stop()
	defer long.Stop()
	for ended := false; ; {
		select {
		case u, ok := <-seen:
			if !ok {
				for _, m := range p.members {
					if text := m.Stderr(); text != "" {
						t.Errorf("a member says: %s", text)
					}
				}
				return acknowledged, missing(t, host, project, all), p.over
			}
			if u.Element != 0 {
				all[u.Election] = append(all[u.Election], u.Element)
				acknowledged++
			}
			if p.heard(u) {
				begin.Reset(betweenPauses)
			}
			if acknowledged >= target && p.over >= 2 && p.number == 0 && !ended {
				ended = true
				begin.Stop()
				for _, m := range p.members {
					m.End()
				}
			}
		case <-begin.C:
			if p.begin() {
				long.Reset(pauseFor)
			} else {
				begin.Reset(betweenPauses)
			}
		case <-long.C:
			p.long = true
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// missing counts the elements that are in no set.
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
