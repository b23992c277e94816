package leadership

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// MaxReportBytes is the most that a report may have, in canonical form.
const MaxReportBytes = 2 << 10

// maxCounter keeps counters exact for every JSON reader.
const maxCounter = 1<<53 - 1

// Counters are what a leader has done in its term, cumulative: none ever falls. As a budget they
// are limits.
type Counters struct {
	Progress   int64 `json:"progress,omitempty"` // any number that rises with useful work
	Tasks      int64 `json:"tasks,omitempty"`
	TokensUsed int64 `json:"tokensUsed,omitempty"` // of a language model
	Calls      int64 `json:"calls,omitempty"`
	Errors     int64 `json:"errors,omitempty"` // of the calls
}

// counter is one of the Counters.
type counter struct {
	name  string
	value int64
}

func (c Counters) all() []counter {
	return []counter{{"progress", c.Progress}, {"tasks", c.Tasks}, {"tokensUsed", c.TokensUsed}, {"calls", c.Calls}, {"errors", c.Errors}}
}

func (c Counters) validate() error {
	for _, n := range c.all() {
		if n.value < 0 || n.value > maxCounter {
			return fmt.Errorf("%s is from 0 to %d, not %d", n.name, int64(maxCounter), n.value)
		}
	}
	return nil
}

// Report is what a leader says of its work in a renewal.
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

// ParseReport turns a JSON object into its canonical form. It takes the members of Report and no
// others; Capabilities, Dependencies and Custom may have any. Nothing, and null, give "".
func ParseReport(text []byte) (ReportText, error) {
	if text = bytes.TrimSpace(text); len(text) == 0 || string(text) == "null" {
		return "", nil
	}
	if len(text) > 4*MaxReportBytes {
		return "", fmt.Errorf("a report has at most %d bytes", MaxReportBytes)
	}
	object, err := readObject(string(text))
	if err != nil {
		return "", fmt.Errorf("a report is a JSON object: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(object)) { // encoding/json would take "Progress" too
		if !slices.Contains(reportMembers, name) {
			return "", fmt.Errorf("a report has no %s; it has %s, and your own fields go into custom", shown(name), strings.Join(reportMembers, ", "))
		}
	}
	var r Report
	if err := decodeStrictly(text, &r); err != nil {
		return "", badMember(err)
	}
	return r.Text()
}

// reportMembers are the names of Report's members.
var reportMembers = []string{"progress", "tasks", "tokensUsed", "calls", "errors", "eta", "health", "capabilities", "dependencies", "custom"}

// badMember says which member of a report has no value of its kind.
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
	text, err := encodeJSON(r)
	switch {
	case err != nil:
		return "", fmt.Errorf("a report: %w", err)
	case len(text) > MaxReportBytes:
		return "", fmt.Errorf("a report has at most %d bytes, this one has %d", MaxReportBytes, len(text))
	}
	return ReportText(text), nil
}

func (r Report) validate() error {
	if err := r.Counters.validate(); err != nil {
		return err
	}
	if r.Errors > r.Calls && r.Calls > 0 {
		return fmt.Errorf("%d errors are more than %d calls", r.Errors, r.Calls)
	}
	if err := validateLine("health", r.Health); err != nil {
		return err
	}
	if r.ETA == "" {
		return nil
	}
	if d, err := time.ParseDuration(r.ETA); err != nil || d < 0 {
		return fmt.Errorf("eta is a duration such as \"20m\", not %s", shown(r.ETA))
	}
	return nil
}

// Report returns what the text says; the zero Report if it is empty.
func (t ReportText) Report() (r Report) {
	if t != "" {
		_ = decodeStrictly([]byte(t), &r) // it is canonical
	}
	return r
}

// decodeStrictly reads one JSON value whose members are all known.
func decodeStrictly(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}

// fallen returns why the report cannot follow the one before: a counter has fallen.
func (c Counters) fallen(before Counters) error {
	was := before.all()
	for i, n := range c.all() {
		if n.value < was[i].value {
			return fmt.Errorf("%s has fallen from %d to %d; counters are cumulative for the term, so report the sum", n.name, was[i].value, n.value)
		}
	}
	return nil
}

// trip is why a policy ends a term: a sentence, and the numbers for the event.
type trip struct {
	why    string
	detail Detail
}

func (t trip) tripped() bool { return t.why != "" }

// judge returns why the counters trip; the zero trip if they do not.
func (p TermPolicy) judge(c Counters) trip {
	limits := p.Budget.all()
	for i, n := range c.all() {
		if most := limits[i].value; most > 0 && n.value > most {
			return trip{
				fmt.Sprintf("%s is %d, and its budget is %d", n.name, n.value, most),
				Detail{Budget: new(most), Counter: n.name, Value: n.value},
			}
		}
	}
	if r := p.ErrorRate; r.Max > 0 && c.Calls >= r.Min && float64(c.Errors) > r.Max*float64(c.Calls) {
		return trip{
			fmt.Sprintf("%d of %d calls have failed, and at most %v may", c.Errors, c.Calls, r.Max),
			Detail{Calls: c.Calls, ErrorRate: json.Number(fmt.Sprint(r.Max)), Errors: c.Errors},
		}
	}
	return trip{}
}

// report takes a leader's report with its heartbeat. Now may be earlier than the commit, never
// later: see Expect.
func (c *Change) report(s Snapshot, text ReportText) error {
	r := &c.Record
	before, report, policy := r.Standing.Report.Report(), text.Report(), r.Policy.Term
	if err := report.fallen(before.Counters); err != nil {
		return invalid("report", err)
	}
	t := policy.judge(report.Counters)
	if t.tripped() && policy.OnTrip != TripNotify {
		*c = s.change() // no heartbeat
		c.depose(s, t)
		return nil
	}
	if stuck := &r.Standing.Ends.Stuck; policy.StuckAfter > 0 && (report.Progress > before.Progress || stuck.IsZero()) {
		*stuck = later(s.Now, policy.StuckAfter)
		c.limit(s.Record.LeaseEnd())
	}
	r.Standing.Report, r.Standing.ReportedAt = text, later(s.Now, 0)
	c.passProbation(s.Now)
	c.notify(t)
	return nil
}

// notify tells, once in a term, of a leader that is no good and goes on.
func (c *Change) notify(t trip) {
	if standing := &c.Record.Standing; t.tripped() && !standing.Notified {
		standing.Notified = true
		c.announce(EventTripped, "")
		c.explain(t.why, t.detail)
	}
}

// depose ends the term now. The leader may not hear of it before the end that it was promised, so
// no lease is granted before that.
func (c *Change) depose(s Snapshot, t trip) {
	r := &c.Record
	promised := s.Record.LeaseEnd()
	r.Standing.endProbation(r.LeaderID, s.Now)
	t.detail.Until = r.Standing.bar(r.LeaderID, r.Token, r.Policy.Term.Cooldown, s.Now, t.why)
	r.Standing.Deposed = deposed{Token: r.Token, Why: t.why}
	c.vacate(EventDeposed, s.Now, promised.Sub(s.Now)+r.Policy.LockDelay+s.Guard)
	c.explain(t.why, t.detail)
}

// deposed is the last term, if it ended by a trip.
type deposed struct {
	Token Token  `json:"fencingToken,omitempty"`
	Why   string `json:"why,omitempty"`
}

func (d deposed) validate() error {
	if d.Why == "" || len(d.Why) > MaxReasonBytes {
		return errors.New("a term was deposed, and the reason is missing")
	}
	return d.Token.validate()
}

// reportField is a report as a member of a standing.
type reportField ReportText

func (f *reportField) encode() json.RawMessage {
	if *f == "" {
		return nil
	}
	return json.RawMessage(*f)
}

func (f *reportField) decode(text json.RawMessage) error {
	report, err := ParseReport(text)
	*f = reportField(report)
	return err
}
