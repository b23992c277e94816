package hub_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
)

const crowd = 10_000

// nothing is a store in which nothing has happened.
type nothing struct{ hub.Store }

func (nothing) Events(context.Context, leadership.EventsRequest) ([]leadership.Event, error) {
	return nil, nil
}

func TestTenThousandWatchesCostOneRead(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		h.takes = 10 * time.Millisecond
		w.change(jobs, 5)
		readers := make([]*reader, crowd)
		for n := range readers {
			readers[n] = w.watches(h, jobs, 5)
		}
		time.Sleep(time.Second)
		h.wants(t, 1, 0, "10,000 watches from the present revision on")
		h.Publish(w.change(jobs, 1)...)
		h.wants(t, 0, 0, "the next event")
		for _, r := range readers {
			r.has("the next event", 6)
		}
		time.Sleep(24 * time.Hour)
		h.wants(t, 0, 0, "a day without news")
		h.SetLive(true)
		time.Sleep(time.Second)
		h.wants(t, 1, 0, "the hub is live anew")
		h.SetLive(false)
		time.Sleep(3*poll + poll/2)
		h.wants(t, 3, 0, "three polls")
	})
}

func TestWhenTheHubIsLiveAnewTheStoreIsNotFlooded(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		const elections = 1000
		h := w.hub(true)
		h.takes = 10 * time.Millisecond
		var readers []*reader
		for n := range elections {
			readers = append(readers, w.watches(h, leadership.Election(fmt.Sprint("election-", n)), 0))
		}
		time.Sleep(time.Minute)
		h.wants(t, elections, 0, "a watch of each election")
		for _, r := range readers {
			w.change(r.election, 1)
		}
		h.SetLive(false)
		h.wants(t, 0, 0, "the hub is not live")
		h.SetLive(true)
		time.Sleep(time.Minute)
		h.wants(t, elections, 0, "the hub is live anew")
		for _, r := range readers {
			r.has("what was lost", 1)
		}
		if h.most > 64 {
			t.Errorf("%d reads were under way at the same time, want 64 at most", h.most)
		}
	})
}

func TestElectionWithoutListenersIsForgotten(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		watch, listener := h.Watch(jobs, 0), h.listen(jobs)
		h.Publish(w.change(jobs, 1)...)
		for name, last := range map[string]interface{ Close() }{"a listener": h.listen("one"), "a watch": h.Watch("two", 0)} {
			election := map[string]leadership.Election{"a listener": "one", "a watch": "two"}[name]
			h.Watch(election, 0).Close()
			h.listen(election).Close()
			assert.True(t, h.listened(election), "%s is left, and is forgotten", name)
			last.Close()
			assert.False(t, h.listened(election), "%s was the last, and its election is not forgotten", name)
		}
		watch.Close()
		listener.Close()
		again := h.listen(jobs)
		watch.Close()
		if again.newest() != 0 || !h.listened(jobs) {
			t.Error("a watch that is closed meddles with a line that came later")
		}
		again.Close()
	})
}

func TestAWatchNeedsLittleMemory(t *testing.T) {
	h := newHub(t, hub.Config{Store: nothing{}, Live: true})
	watches := make([]*hub.Watch, crowd)
	before := inUse()
	for n := range watches {
		watches[n] = h.Watch(jobs, 5)
	}
	each := (inUse() - before) / crowd
	t.Logf("a watch needs %d bytes", each)
	if each > 512 {
		t.Errorf("a watch needs %d bytes, want 512 at most", each)
	}
	runtime.KeepAlive(watches)
}

func TestAnElectionsEventsInMemoryAreBounded(t *testing.T) {
	h := newHub(t, hub.Config{Store: nothing{}, Live: true})
	watch := h.Watch(jobs, 0)
	defer watch.Close()
	watch.Ready(t.Context())
	before := inUse()
	for r := range leadership.Revision(100_000) {
		h.Publish(leadership.Event{Election: jobs, Revision: r + 1})
	}
	grown := inUse() - before
	t.Logf("an election with many events needs %d bytes", grown)
	if grown > 64<<10 {
		t.Errorf("100,000 events left %d bytes, want 64 KiB at most", grown)
	}
	runtime.KeepAlive(h)
}

func inUse() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
