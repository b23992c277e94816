package main

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
	"time"

	"regent/leadership"
	"regent/test/load"
)

//go:embed report.md.tmpl
var reportText string

// How often something happens in an hour.
const (
	beats       = 3 // renewals in a lease
	beatsAnHour = beats * int(time.Hour/leadership.DefaultLeaseDuration)
	looksAnHour = int(time.Hour / (15 * time.Second)) // into the outbox, on average by default; see package outbox
	waitsAnHour = int(time.Hour / leadership.MaxWait) // a waiting candidate asks Regent again at least
	// an instance with followers of a journal looks at it, on average, while it hears the other
	// instances; see package instance
	followsAnHour = int(time.Hour / (23500 * time.Millisecond))
	// the first waiting candidate asks at most for a lease that is renewed through another
	// instance: when it would have ended without a renewal since the last answer, so after two
	// thirds of a lease at least
	attemptsAnHour = beatsAnHour / (beats - 1)
)

// Report returns the report in Markdown.
func Report(firestore, spanner Found) (string, error) {
	r := report{firestore, spanner}
	t, err := template.New("report").Parse(reportText)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = t.Execute(&text, r.data())
	return load.Wrap(text.String()), err
}

// report is the page with the counts on both stores.
type report struct{ f, s Found }

func (r report) data() map[string]any {
	handOver := func(f Found) Cost { return f.operation(releaseName).plus(f.operation(vacantName)) }
	return map[string]any{
		"Beats": beatsAnHour, "Looks": looksAnHour, "Waits": waitsAnHour,
		"Early":           fmt.Sprintf("%.0f", float64(beatsAnHour)/0.9),
		"Hours":           r.hours(),
		"HandOver":        r.both(handOver),
		"HandOverRead":    handOver(r.f).Read,
		"HandOverWritten": handOver(r.f).Written,
		"Ballots":         BallotsTable(r.f.Kind, r.f.Ballots) + "\n" + BallotsTable(r.s.Kind, r.s.Ballots),
	}
}

// both says what something costs on either store.
func (r report) both(of func(Found) Cost) string {
	say := func(f Found) string {
		store, unit := words(f.Kind)
		c := of(f)
		return fmt.Sprintf("on %s RPCs: %d, %s read: %d, written: %d", store, c.RPCs(), unit, c.Read, c.Written)
	}
	return say(r.f) + "; " + say(r.s)
}

// hours returns the cost of an hour of each role.
func (r report) hours() string {
	t := newTable("an hour of", "Firestore: RPCs", "documents read", "documents written", "Spanner: RPCs", "rows read", "rows written")
	add := func(name string, of func(Found) Cost) {
		f, s := of(r.f), of(r.s)
		t.add(name, count(f.RPCs()), count(f.Read), count(f.Written), count(s.RPCs()), count(s.Read), count(s.Written))
	}
	each := func(name, operation string, times int) {
		add(name, func(f Found) Cost { return f.operation(operation).times(times) })
	}
	each("a leader", renewalName, beatsAnHour)
	for i, t := range r.f.Turns {
		if t.Instances > 1 {
			add(fmt.Sprintf("a leader whose renewals reach %d instances in turn", t.Instances), func(f Found) Cost { return f.Turns[i].Cost })
		}
	}
	each("100 leaders, renewed in one batch", batchName, beatsAnHour)
	each("a process that leads 100 elections with the Go SDK", batchName, beatsAnHour)
	t.add("waiting candidates and watchers, however many, while nothing changes", "0", "0", "0", "0", "0", "0") // see TestACrowdCostsTheStoreNothingWhileItWaits
	add(fmt.Sprintf("%d readers of one election from the cache, together, at one instance", readers), func(f Found) Cost { return f.Readers })
	each("at most: an election with waiting candidates at another instance than the one that renews it", refusedName, attemptsAnHour)
	each("an instance, whatever it serves: reading the outbox", lookName, looksAnHour)
	each("an instance that follows a journal where nothing is appended, while it hears the others", headName, followsAnHour)
	return t.String()
}
