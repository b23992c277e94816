package hub_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
)

func TestAListenerIsWokenOnceForAllThatHappened(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		l := h.listen(jobs)
		defer l.Close()
		woken := func(when string, want bool, newest leadership.Revision) {
			t.Helper()
			got := false
			select {
			case <-l.C():
				got = true
			default:
			}
			if r := l.newest(); got != want || r != newest {
				t.Errorf("%s: woken is %v and the newest event %d, want %v and %d", when, got, r, want, newest)
			}
			select {
			case <-l.C():
				t.Errorf("%s: woken twice", when)
			default:
			}
		}
		woken("at first", false, 0)
		h.Publish(w.change("other", 1)...)
		woken("another election's event", false, 0)
		first := w.change(jobs, 3)
		h.Publish(first...)
		h.Publish(w.change(jobs, 1)...)
		woken("four events", true, 4)
		h.Publish(first...)
		woken("old news", false, 4)
		w.change(jobs, 1)
		late := w.change(jobs, 1)
		h.Publish(late...)
		woken("an event after a gap", true, 6)
		h.Publish(late...)
		woken("the same again", false, 6)
		h.Publish(w.change(jobs, 1)...)
		woken("the next", true, 7)
		h.SetLive(true)
		woken("the hub is live anew", true, 7)
		h.SetLive(false)
		woken("the hub is not live", true, 7)
		h.wants(t, 0, 0, "a listener")
	})
}

func TestAListenerHearsMoreAfterAnEventThatWasMadeUp(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		l := h.listen(jobs)
		defer l.Close()
		h.Publish(w.change(jobs, 1)...)
		h.Publish(leadership.Event{Election: jobs, Revision: 1 << 40})
		<-l.C()
		time.Sleep(time.Millisecond)
		if _, err := h.Read(t.Context(), leadership.ReadRequest{Election: jobs}); err != nil { // as a line would, by an attempt
			t.Fatal(err)
		}
		<-l.C()
		h.Publish(w.change(jobs, 1)...)
		<-l.C()
		w.change(jobs, 1)
		h.Publish(w.change(jobs, 1)...)
		<-l.C()
		assert.EqualValues(t, 4, l.newest(), "the newest event is said to be")
	})
}
