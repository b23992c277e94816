package checker_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
	"regent/test/checker"
)

func TestRecordingRoundTrip(t *testing.T) {
	t.Parallel()
	r := world(shown(1, 15*s), strong(shown(2, 25*s)))
	r.Changes[0].Answered = checker.Forever
	r.Consumers = []checker.Consumer{told(1, 2, 2), told(), told(3)}
	r.Consumers[1] = checker.Consumer{Name: "cy", Elections: []leadership.Election{"planner"}, After: map[leadership.Election]leadership.Revision{"planner": 2}, Partial: true}
	var text bytes.Buffer
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	again, err := checker.Read(&text)
	if diff := cmp.Diff(r, again); diff != "" || err != nil {
		t.Errorf("%v (-written +read):\n%s", err, diff)
	}
}

func TestFleetRecordingRoundTrip(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		r := fleet{Clients: 6, Elections: 2, Calls: 400, Lost: 0.1, Seed: seed}.run(t)
		r.Faults = []checker.Fault{{Name: "kill -9 & more", From: 3, Until: checker.Forever}}
		r.Willing = []checker.Willing{{Who: "ann", Election: "planner", From: 1<<53 + 1, Until: 1<<62 + 3}}
		r.Calls[0].Waited, r.Calls[0].Answer = 3, &leadership.Lease{Election: "planner", ReadAt: begin.In(time.FixedZone("", 3600)).Add(1), Lapsed: true}
		var text bytes.Buffer
		if err := r.Write(&text); err != nil {
			t.Fatal(err)
		}
		again, err := checker.Read(&text)
		if diff := cmp.Diff(r, again); diff != "" || err != nil {
			t.Errorf("seed %d: %v (-want +got):\n%s", seed, err, diff)
		}
	}
}

func TestInvalidRecordingIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"reading":[]}`, `{"readings":[`, `{"readings":[{"asked":"1s"}]}`, `{"calls":[{"key":"00"}]}`} {
		if _, err := checker.Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

func TestRecorderIsSafeForManyGoroutines(t *testing.T) {
	t.Parallel()
	var recorder checker.Recorder
	events := history("planner", 2)
	recorder.Expect(checker.Consumer{Name: "bob", Partial: true})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			recorder.Expect(checker.Consumer{Name: "bob"})
			recorder.Deliver("bob", events...)
			recorder.Change(checker.Change{Revision: 1})
			recorder.Heartbeat(checker.Heartbeat{Token: 1})
			recorder.Read(checker.Reading{Revision: 1})
		})
	}
	wg.Wait()
	n := recorder.Deliver("cy", events[0])
	r := recorder.Recording(events)
	if len(r.History) != 4 || len(r.Consumers) != 2 || len(r.Consumers[0].Got) != 32 || !r.Consumers[0].Partial || n != 1 ||
		len(r.Changes) != 8 || len(r.Heartbeats) != 8 || len(r.Readings) != 8 {
		t.Errorf("%d, %+v", n, r)
	}
}
