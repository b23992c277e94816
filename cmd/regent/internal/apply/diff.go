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

// Member is a member of a configuration that differs, such as policy.maxTerm. Values are as people
// write them in a file; "" stands for a member that is left out.
type Member struct {
	Name string `json:"member"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// diff compares two configurations, defaults filled in. nil is none.
func diff(from, to *leadership.Config) (differ []Member) {
	before, after := members(from), members(to)
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if before[name] != after[name] {
			differ = append(differ, Member{name, before[name], after[name]})
		}
	}
	return differ
}

// members returns the members of a configuration with their values. They are those of the API, so
// that a new one is compared, too.
func members(c *leadership.Config) map[string]string {
	flat := map[string]string{}
	if c == nil {
		return flat
	}
	text, err := wire.Marshal(wire.NewConfigureRequest(c.Explicit()))
	if err != nil {
		panic(err) // a configuration can always be written
	}
	document := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&document); err != nil {
		panic(err)
	}
	flatten("", document, flat)
	return flat
}

func flatten(prefix string, object map[string]any, into map[string]string) {
	for name, value := range object {
		name = prefix + name
		switch v := value.(type) {
		case map[string]any:
			flatten(name+".", v, into)
		case string:
			into[name] = spoken(v)
		default:
			text, _ := json.Marshal(v)
			into[name] = string(text)
		}
	}
}

// spoken is a duration as people write it, and any other text in quotes.
func spoken(text string) string {
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Sprintf("%q", text)
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
