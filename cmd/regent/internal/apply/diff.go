package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// Member is a member of a configuration that differs, such as policy.maxTerm. A nil value means
// that the member is left out.
type Member struct {
	Name string          `json:"member"`
	From json.RawMessage `json:"from,omitempty"`
	To   json.RawMessage `json:"to,omitempty"`
}

// Words returns a value of a Member as people write it in a file: a duration without quotes. It
// returns "" for nil.
func Words(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return string(value)
	}
	if _, err := time.ParseDuration(text); err == nil {
		return text
	}
	return fmt.Sprintf("%q", text)
}

// diff compares two configurations, with defaults filled in. nil means no configuration.
func diff(from, to *leadership.Config) (differ []Member) {
	before, after := members(from), members(to)
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !bytes.Equal(before[name], after[name]) {
			differ = append(differ, Member{name, before[name], after[name]})
		}
	}
	return differ
}

// members returns the members of a configuration with their values. They come from the JSON of the
// API, so that a new member is compared, too.
func members(c *leadership.Config) map[string]json.RawMessage {
	flat := map[string]json.RawMessage{}
	if c == nil {
		return flat
	}
	text, err := wire.Marshal(wire.NewConfigureRequest(c.Explicit()))
	if err != nil {
		panic(err) // cannot fail: a configuration can always be encoded
	}
	flatten("", text, flat)
	return flat
}

func flatten(prefix string, object json.RawMessage, into map[string]json.RawMessage) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(object, &members) // it was encoded above
	for name, value := range members {
		switch name = prefix + name; value[0] {
		case '{':
			flatten(name+".", value, into)
		case '"':
			var text string
			_ = json.Unmarshal(value, &text)
			into[name], _ = json.Marshal(short(text))
		default:
			into[name] = value
		}
	}
}

// short returns a duration as people write it, and any other text unchanged.
func short(text string) string {
	d, err := time.ParseDuration(text)
	if err != nil {
		return text
	}
	text = d.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}
