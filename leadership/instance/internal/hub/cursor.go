package hub

import (
	"errors"
	"slices"
	"time"
)

// Cursor is the progress of a feed: every event that was committed up to that instant of the
// store's clock was passed on. The zero Cursor is for a reader that has seen nothing.
type Cursor struct{ at time.Time }

// newCursor returns the cursor of an instant, in the form that ParseCursor returns.
func newCursor(at time.Time) Cursor { return Cursor{at.UTC().Round(0)} }

// String returns the cursor as text; ParseCursor reads it.
func (c Cursor) String() string { return c.at.Format(time.RFC3339Nano) }

// IsZero reports whether the cursor is the zero Cursor.
func (c Cursor) IsZero() bool { return c.at.IsZero() }

// ParseCursor reads the text that String returns. The error is a sentence that names the mistake.
func ParseCursor(text string) (Cursor, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if c := newCursor(at); err == nil && !c.IsZero() && c.String() == text {
		return c, nil
	}
	return Cursor{}, errors.New(
		"a cursor is what a stream of all elections gave as the id of an event; leave it out to begin with how things are")
}

// After reports whether the cursor lies after the instant.
func (c Cursor) After(at time.Time) bool { return c.at.After(at) }

// later returns the later of two cursors.
func (c Cursor) later(other Cursor) Cursor { return Cursor{latest(c.at, other.at)} }

func latest(all ...time.Time) time.Time { return slices.MaxFunc(all, time.Time.Compare) }

func earliest(all ...time.Time) time.Time { return slices.MinFunc(all, time.Time.Compare) }
