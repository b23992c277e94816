package storetest

import (
	"regexp"
	"time"
)

// instants are those in a standing, as rule.Codec writes them.
var instants = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"`)

// Earlier returns the text of a standing with all its instants that much earlier, for the Advance
// of a store whose clock cannot be moved.
func Earlier(standing string, d time.Duration) string {
	return instants.ReplaceAllStringFunc(standing, func(quoted string) string {
		at, err := time.Parse(`"`+time.RFC3339Nano+`"`, quoted)
		if err != nil {
			return quoted
		}
		return at.Add(-d).Format(`"` + time.RFC3339Nano + `"`)
	})
}
