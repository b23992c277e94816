package firestore

import (
	"testing"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func TestWhatWasCommittedWhileItIsReadWaitsForTheNextTime(t *testing.T) {
	t.Parallel()
	const d = database("projects/p/databases/(default)")
	ev := takeover()
	created := func(at time.Time) findings {
		doc := &firestorepb.Document{Name: d.event(ev.ID()), Fields: stored(ev), CreateTime: timestamppb.New(at)}
		return findings{docs: []reading{{doc: doc, at: epoch}}, at: epoch}
	}
	for _, c := range []struct {
		what string
		at   time.Time
		want int
	}{
		{"at the instant", epoch.Add(-time.Hour), 0},
		{"just after it", epoch.Add(-time.Hour + time.Microsecond), 1},
		{"just when the first page was read", epoch, 1},
		{"later than that", epoch.Add(time.Microsecond), 0},
	} {
		w := window{after: epoch.Add(-time.Hour)}
		if err := w.add(d, created(c.at)); err != nil || len(w.events) != c.want || !w.now.Equal(epoch) {
			t.Errorf("committed %s: %d events, %v; want %d", c.what, len(w.events), err, c.want)
		}
	}
}
