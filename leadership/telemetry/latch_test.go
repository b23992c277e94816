package telemetry_test

import (
	"testing"
	"testing/synctest"

	"regent/leadership/telemetry/telemetrytest"
)

func TestAnInstanceThatRefusesAllShowsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := telemetrytest.New(t)
		latched := false
		if err := w.Metrics.Latch(func() bool { return latched }); err != nil {
			t.Fatal(err)
		}
		before := w.Read()["regent.callers.unverified"]
		latched = true
		if after := w.Read()["regent.callers.unverified"]; before != 0 || after != 1 {
			t.Errorf("%v before the latch closes, %v after", before, after)
		}
		inCatalogue(w)
	})
}
