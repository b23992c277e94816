package kubernetes

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// over is a service with deleted elections only.
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

// strict admits one read a second.
type strict struct {
	over
	last time.Time
}

func (s *strict) Read(ctx context.Context, r leadership.ReadRequest) (leadership.Reading, error) {
	if again := time.Until(s.last.Add(time.Second)); again > 0 {
		return leadership.Reading{}, &leadership.Error{Code: wire.RateLimited, RetryAfter: again}
	}
	s.last = time.Now()
	return s.over.Read(ctx, r)
}

func TestAWatchThatReadsTooOftenGoesOnLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		watch := watching{
			door: New(Config{Service: &strict{}}), w: w, r: httptest.NewRequest("GET", "/", nil),
			sent: map[leadership.Election]leadership.Revision{"k8s.default.a": 1, "k8s.default.b": 1},
		}
		changes := []change{{election: "k8s.default.a", revision: 2}, {election: "k8s.default.b", revision: 2}}
		if err := watch.pass(t.Context(), changes); err != nil || len(watch.sent) > 0 {
			t.Errorf("%v; it remembers %v, and sent %q", err, watch.sent, w.Body)
		}
	})
}

func TestAListThatIsNotReadIsBounded(t *testing.T) {
	t.Parallel()
	most, held := int64(100), int64(0)
	d := New(Config{Reply: func(_ context.Context, bytes int64) (func(), error) {
		if held += bytes; held > most {
			return nil, wire.RateLimited
		}
		return func() { held -= bytes }, nil
	}})
	w := httptest.NewRecorder()
	if err := d.large(w, httptest.NewRequest("GET", "/", nil), object{"kind": "LeaseList"}); err != nil || w.Body.Len() == 0 || held != 0 {
		t.Errorf("%v; sent %q, and %d bytes are held afterwards", err, w.Body, held)
	}
	w, most = httptest.NewRecorder(), 0
	if err := d.large(w, httptest.NewRequest("GET", "/", nil), object{"kind": "LeaseList"}); !errors.Is(err, wire.RateLimited) || w.Body.Len() > 0 {
		t.Errorf("%v; sent %q", err, w.Body)
	}
}
