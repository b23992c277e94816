package kubernetes

import (
	"context"
	"net/http/httptest"
	"testing"

	"regent/leadership"
	"regent/leadership/instance"
)

// over has deleted elections only.
type over struct{ instance.Service }

func (over) Read(context.Context, leadership.ReadRequest) (leadership.Reading, error) {
	return leadership.Reading{}, &leadership.Error{Code: leadership.NotFound}
}

func TestAWatchForgetsLeasesThatAreDeleted(t *testing.T) {
	w := httptest.NewRecorder()
	watch := watching{
		door: New(Config{Service: over{}}), w: w, r: httptest.NewRequest("GET", "/", nil),
		sent: map[leadership.Election]leadership.Revision{"k8s.default.jobs": 3},
	}
	if err := watch.pass(t.Context(), []change{{election: "k8s.default.jobs", revision: 4}}); err != nil || w.Body.Len() == 0 || len(watch.sent) > 0 {
		t.Errorf("%v; it sent %q, and remembers %v", err, w.Body, watch.sent)
	}
}
