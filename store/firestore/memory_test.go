package firestore

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"regent/leadership"
)

// version is the held record as a write at epoch+n seconds left it.
func version(e leadership.Election, n int) document {
	r := heldRecord()
	at := epoch.Add(time.Duration(n) * time.Second)
	r.Election, r.LeaseDuration, r.AcquiredAt, r.HeartbeatAt = e, time.Minute, at, at
	return document{record: r, updated: at}
}

func renewalOf(r leadership.Record) leadership.Renewal {
	return leadership.Renewal{Election: r.Election, CandidateID: r.LeaderID, KeyHash: r.KeyHash, Token: r.Token}
}

func TestAMemoryKnowsOnlyTheLeaseThatIsNamed(t *testing.T) {
	t.Parallel()
	m := newMemory(4)
	doc := version("jobs", 0)
	m.remember(doc, epoch)
	right := renewalOf(doc.record)
	held, ch, ok := m.heartbeat(right, document{})
	if !ok || held != doc || !ch.Before.Equal(doc.record.LeaseEnd()) {
		t.Errorf("got %+v, due %v, %v; want %+v, due %v", held, ch.Before, ok, doc, doc.record.LeaseEnd())
	}
	for what, spoil := range map[string]func(*leadership.Renewal){
		"another election":  func(c *leadership.Renewal) { c.Election = "other" },
		"another candidate": func(c *leadership.Renewal) { c.CandidateID = "eve" },
		"another key":       func(c *leadership.Renewal) { c.KeyHash[31]++ },
		"another token":     func(c *leadership.Renewal) { c.Token-- },
	} {
		wrong := right
		spoil(&wrong)
		if _, _, ok := m.heartbeat(wrong, document{}); ok {
			t.Errorf("%s: it is known", what)
		}
	}
}

func TestALeaseIsNotRenewedByHeartAfterAnyReplyShowedThatItIsOver(t *testing.T) {
	t.Parallel()
	m := newMemory(4)
	doc := version("jobs", 0)
	m.remember(doc, epoch)
	m.remember(version("other", 60), epoch.Add(time.Minute-time.Microsecond))
	if _, _, ok := m.heartbeat(renewalOf(doc.record), document{}); !ok {
		t.Error("it is over before its end")
	}
	m.remember(version("other", 61), epoch.Add(time.Minute))
	if _, _, ok := m.heartbeat(renewalOf(doc.record), document{}); ok {
		t.Error("it is not over at its end")
	}
}

func TestAnOlderReplyDoesNotReplaceANewerOne(t *testing.T) {
	t.Parallel()
	m := newMemory(4)
	for _, n := range []int{2, 1, 3, 0, 2} {
		m.remember(version("jobs", n), epoch)
	}
	if held, _, ok := m.heartbeat(renewalOf(version("jobs", 0).record), document{}); !ok || held != version("jobs", 3) {
		t.Errorf("got %+v, %v; want the third version", held, ok)
	}
	vacant := version("jobs", 1)
	vacant.record.LeaderID = ""
	m.remember(vacant, epoch)
	if _, _, ok := m.heartbeat(renewalOf(version("jobs", 0).record), document{}); !ok {
		t.Error("an older vacancy made it forget")
	}
	vacant.updated = epoch.Add(time.Minute)
	m.remember(vacant, epoch)
	if _, _, ok := m.heartbeat(renewalOf(version("jobs", 0).record), document{}); ok {
		t.Error("a newer vacancy is not seen")
	}
}

func TestOnlyTheVersionThatWasRefusedIsForgotten(t *testing.T) {
	t.Parallel()
	m := newMemory(4)
	m.remember(version("jobs", 1), epoch)
	m.forget(version("jobs", 0))
	if _, _, ok := m.heartbeat(renewalOf(version("jobs", 0).record), document{}); !ok {
		t.Error("a newer version was forgotten")
	}
	m.forget(version("jobs", 1))
	if _, _, ok := m.heartbeat(renewalOf(version("jobs", 0).record), document{}); ok {
		t.Error("it was not forgotten")
	}
}

func TestMemoryIsBoundedAndKeepsLeasesInUse(t *testing.T) {
	t.Parallel()
	m := newMemory(3)
	for _, e := range []leadership.Election{"a", "b", "c"} {
		m.remember(version(e, 0), epoch)
	}
	m.heartbeat(renewalOf(version("a", 0).record), document{})
	m.remember(version("b", 1), epoch)
	m.remember(version("d", 0), epoch)
	for e, want := range map[leadership.Election]bool{"a": true, "b": true, "c": false, "d": true} {
		if _, _, ok := m.heartbeat(renewalOf(version(e, 0).record), document{}); ok != want {
			t.Errorf("%s: known %v, want %v", e, ok, want)
		}
	}
	if n := m.leases.Len(); n != 3 {
		t.Errorf("it holds %d, want 3", n)
	}
}

func TestAMemoryMayBeUsedByMany(t *testing.T) {
	t.Parallel()
	m := newMemory(8)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for n := range 500 {
				e := leadership.Election(fmt.Sprint("e", (n+g)%12))
				m.remember(version(e, n), epoch)
				if held, _, ok := m.heartbeat(renewalOf(version(e, 0).record), document{}); ok && n%7 == 0 {
					m.forget(held)
				}
			}
		})
	}
	wg.Wait()
	if n := m.leases.Len(); n > 8 {
		t.Errorf("it holds %d, at most 8 wanted", n)
	}
}
