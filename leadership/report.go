package leadership

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"regent/leadership/internal/form"
)

// MaxReportBytes limits a report in canonical form.
const MaxReportBytes = 2 << 10

// maxCounter keeps counters exact for every JSON reader.
const maxCounter = 1<<53 - 1

// Counters count a leader's work since its term began, so they never fall. As a budget they are
// limits.
type Counters struct {
	Progress   int64 `json:"progress,omitempty"` // any number that rises with useful work
	Tasks      int64 `json:"tasks,omitempty"`
	TokensUsed int64 `json:"tokensUsed,omitempty"` // of a language model
	Calls      int64 `json:"calls,omitempty"`
	Errors     int64 `json:"errors,omitempty"` // of the calls
}

// Counter is one of the Counters.
type Counter struct {
	Name  string
	Value int64
}

// Plus returns the sum of both, each counter capped at maxCounter.
func (c Counters) Plus(d Counters) Counters {
	sum := func(a, b int64) int64 { return min(a+b, maxCounter) }
	return Counters{sum(c.Progress, d.Progress), sum(c.Tasks, d.Tasks), sum(c.TokensUsed, d.TokensUsed), sum(c.Calls, d.Calls), sum(c.Errors, d.Errors)}
}

func (c Counters) All() []Counter {
	return []Counter{{"progress", c.Progress}, {"tasks", c.Tasks}, {"tokensUsed", c.TokensUsed}, {"calls", c.Calls}, {"errors", c.Errors}}
}

// Validate returns an error unless each part is within its bounds.
func (c Counters) Validate() error {
	for _, n := range c.All() {
		if n.Value < 0 || n.Value > maxCounter {
			return fmt.Errorf("%s is from 0 to %d, not %d", n.Name, int64(maxCounter), n.Value)
		}
	}
	return nil
}

// Report is a leader's account of its work, sent with a renewal.
type Report struct {
	Counters
	ETA          string                     `json:"eta,omitempty"`    // a duration, as "20m"
	Health       string                     `json:"health,omitempty"` // one line for people, as "ok"
	Capabilities map[string]json.RawMessage `json:"capabilities,omitempty"`
	Dependencies map[string]json.RawMessage `json:"dependencies,omitempty"`
	Custom       map[string]json.RawMessage `json:"custom,omitempty"`
}

// ReportText is a Report as a JSON object in canonical form, or empty.
type ReportText string

// ParseReport returns the canonical form of a JSON object. It accepts only the members of Report;
// Capabilities, Dependencies and Custom may have any. Empty text and null give "".
func ParseReport(text []byte) (ReportText, error) {
	if text = bytes.TrimSpace(text); len(text) == 0 || string(text) == "null" {
		return "", nil
	}
	if len(text) > 4*MaxReportBytes {
		return "", fmt.Errorf("a report has at most %d bytes", MaxReportBytes)
	}
	object, err := form.Object(string(text))
	if err != nil {
		return "", fmt.Errorf("a report is a JSON object: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(object)) { // encoding/json would take "Progress" too
		if !slices.Contains(reportMembers, name) {
			return "", fmt.Errorf("a report has no %s; it has %s, and your own fields go into custom", form.Shown(name), strings.Join(reportMembers, ", "))
		}
	}
	var r Report
	if err := form.Decode(text, &r); err != nil {
		return "", badMember(err)
	}
	return r.Text()
}

// reportMembers are the names of Report's members.
var reportMembers = []string{"progress", "tasks", "tokensUsed", "calls", "errors", "eta", "health", "capabilities", "dependencies", "custom"}

// badMember returns an error that names the member of a report whose value has the wrong type.
func badMember(err error) error {
	var e *json.UnmarshalTypeError
	if !errors.As(err, &e) {
		return fmt.Errorf("a report: %w", err)
	}
	kind := map[reflect.Kind]string{reflect.Int64: "a whole number below 2^53", reflect.String: "a text", reflect.Map: "an object"}[e.Type.Kind()]
	return fmt.Errorf("%s is %s, not this %s", e.Field[strings.LastIndexByte(e.Field, '.')+1:], kind, e.Value)
}

// Text returns the report's canonical form, or an error that says what is wrong with it.
func (r Report) Text() (ReportText, error) {
	if err := r.validate(); err != nil {
		return "", err
	}
	text, err := form.JSON(r)
	switch {
	case err != nil:
		return "", fmt.Errorf("a report: %w", err)
	case len(text) > MaxReportBytes:
		return "", fmt.Errorf("a report has at most %d bytes, this one has %d", MaxReportBytes, len(text))
	}
	return ReportText(text), nil
}

func (r Report) validate() error {
	if err := r.Counters.Validate(); err != nil {
		return err
	}
	if r.Errors > r.Calls && r.Calls > 0 {
		return fmt.Errorf("%d errors are more than %d calls", r.Errors, r.Calls)
	}
	if err := form.Line("health", r.Health); err != nil {
		return err
	}
	if r.ETA == "" {
		return nil
	}
	if d, err := time.ParseDuration(r.ETA); err != nil || d < 0 {
		return fmt.Errorf("eta is a duration such as \"20m\", not %s", form.Shown(r.ETA))
	}
	return nil
}

// Report decodes the text. Empty text gives the zero Report.
func (t ReportText) Report() (r Report) {
	if t != "" {
		_ = form.Decode([]byte(t), &r) // it is canonical
	}
	return r
}
