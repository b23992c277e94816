package hub_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership/instance/internal/hub"
)

func TestACursorTravelsAndComesBack(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000006Z", "2026-01-02T03:04:05.1Z"} {
		if c, err := hub.ParseCursor(text); err != nil || c.String() != text || c.IsZero() {
			t.Errorf("%s came back as %v, %v", text, c, err)
		}
	}
	for _, text := range []string{
		"", "now", "17", "2026-01-02", "0001-01-01T00:00:00Z", "2026-01-02T03:04:05.10Z", "2026-01-02T03:04:05+00:00", "2026-01-02T04:04:05+01:00",
	} {
		if c, err := hub.ParseCursor(text); err == nil || !c.IsZero() {
			t.Errorf("%q was taken for the cursor %v", text, c)
		}
	}
}

func FuzzACursorHasOneSpelling(f *testing.F) {
	f.Add("2026-01-02T03:04:05.000000006Z")
	f.Add("9999-12-31T23:59:59.999999999Z")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := hub.ParseCursor(text); err == nil && c.String() != text {
			t.Errorf("%q came back as %q", text, c)
		}
	})
}

// cursorOf is the cursor of an instant.
func cursorOf(t *testing.T, at time.Time) hub.Cursor {
	t.Helper()
	c, err := hub.ParseCursor(at.UTC().Format(time.RFC3339Nano))
	require.NoError(t, err)
	return c
}
