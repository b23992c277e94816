package firestore

import (
	"errors"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

func TestARenewalThatIsOKWithoutATimeIsUnknown(t *testing.T) {
	t.Parallel()
	s := &Store{memory: newMemory(1)}
	b := heartbeat{held: document{record: rule.Record{Election: "jobs", LeaderID: "ann", LeaseDuration: time.Minute}}, due: epoch.Add(time.Minute)}
	if got := s.renewed(t.Context(), b, written{}); !errors.Is(got.Err, leadership.OutcomeUnknown) {
		t.Errorf("got %+v, want %s", got, leadership.OutcomeUnknown)
	}
}
