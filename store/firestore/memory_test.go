package firestore

import (
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// version is the held record as a write at epoch+n seconds left it.
func version(e leadership.Election, n int) document {
	r := heldRecord()
	at := epoch.Add(time.Duration(n) * time.Second)
	r.Election, r.LeaseDuration, r.AcquiredAt, r.HeartbeatAt = e, time.Minute, at, at
	return document{record: r, updated: at}
}

func renewalOf(r rule.Record) rule.Renewal {
	return rule.Renewal{Election: r.Election, CandidateID: r.LeaderID, KeyHash: r.KeyHash, Token: r.Token}
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
