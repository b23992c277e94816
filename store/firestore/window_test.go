package firestore

import (
	"testing"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func TestWhatWasCommittedWhileItIsReadWaitsForTheNextTime(t *testing.T) {
	t.Parallel()
	const d = database("projects/p/databases/(default)")
	ev := takeover()
	committed := func(at, read time.Time) findings {
		doc := &firestorepb.Document{Name: d.event(ev.ID()), Fields: stored(ev), CreateTime: timestamppb.New(at)}
		return findings{docs: []reading{{doc: doc, at: read}}, at: read}
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
		w := window{after: epoch.Add(-time.Hour), seen: map[int64]int{}}
		for _, read := range []time.Time{epoch, epoch.Add(time.Minute)} { // one page has it, and so has a later one
			require.NoError(t, w.add(d, committed(c.at, read)))
		}
		if len(w.events) != 2*c.want || !w.now.Equal(epoch) {
			t.Errorf("committed %s: %d events of two, as of %v; want %d as of %v", c.what, len(w.events), w.now, 2*c.want, epoch)
		}
	}
}
