package instance

import (
	"regent/leadership/instance/internal/hub"
	"regent/leadership/instance/internal/view"
)

type (
	// Watch gets every event of one election after a revision: once, in order and without a gap.
	Watch = hub.Watch
	// News is what Watch.Listen returns.
	News = hub.News
	// Report is a leader's report, as Watch.Listen returns it.
	Report = view.Report
	// Feed gets every event of the selected elections.
	Feed = hub.Feed
	// Item is one event of a Feed, and the cursor to resume from.
	Item = hub.Item
	// Cursor is how far a Feed has come.
	Cursor = hub.Cursor
)

// ErrSlow ends a Feed that is read too slowly.
var ErrSlow = hub.ErrSlow

// ParseCursor reads the text that Cursor.String returns. The error is a sentence that names the
// mistake.
func ParseCursor(text string) (Cursor, error) { return hub.ParseCursor(text) }

// How old a cached reading may be; see Config.CacheExpiry.
const (
	DefaultCacheExpiry = hub.DefaultExpiry
	MaxCacheExpiry     = hub.MaxExpiry
)
