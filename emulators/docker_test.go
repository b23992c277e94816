package emulators

import (
	"context"
	"os"
	"testing"
	"time"
)

// TestContainersAnswerAndAreRemoved needs a Docker engine that can pull the images, and takes
// minutes the first time, so it runs only on request.
func TestContainersAnswerAndAreRemoved(t *testing.T) {
	if os.Getenv("REGENT_EMULATORS") != string(SourceDocker) {
		t.Skip("SKIPPED, NOT PROVED: nothing was tested with containers. REGENT_EMULATORS=docker runs this")
	}
	set, err := Start(t.Context(), Config{Source: SourceDocker})
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, kind := range Kinds() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if awaitAnswer(ctx, kind, set.Host(kind)) == nil {
			t.Errorf("%s answers after Stop", kind)
		}
	}
	if err := set.Stop(t.Context()); err != nil {
		t.Errorf("a second Stop: %v", err)
	}
}
