package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"time"

	"regent/leadership"
	"regent/test/load"
)

//go:embed report.md.tmpl
var reportText string

// looksAnHour is how often an instance reads the outbox, on average by default. See package
// outbox.
const looksAnHour = int(time.Hour / (15 * time.Second))

// followsAnHour is how often an instance with followers of a journal looks at it, on average, while
// it hears the other instances. See package instance.
const followsAnHour = int(time.Hour / (23500 * time.Millisecond))

// waitsAnHour is how often a waiting candidate asks Regent again at least: MaxWait limits a call.
const waitsAnHour = int(time.Hour / leadership.MaxWait)

// ownName is the line of the calls that clients make of Regent.
const ownName = "calls of Regent by its clients"

// attemptsAnHour is how often at most the first waiting candidate asks for a lease that is renewed
// through another instance: when it would have ended without a renewal since the last answer, so
// after two thirds of a lease at least.
const attemptsAnHour = beatsAnHour / (beats - 1)

// Report returns the report in Markdown. It is an error if a count contradicts what the report
// says.
func Report(firestore, spanner Found) (string, error) {
	r := report{firestore, spanner}
	if err := cmp.Or(firestore.check(), spanner.check()); err != nil {
		return "", err
	}
	t, err := template.New("report").Parse(reportText)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = t.Execute(&text, r.data())
	return load.Wrap(text.String()), err
}

// report is what was counted on both stores.
type report struct{ f, s Found }

// check compares what the text says with what was counted.
func (f Found) check() error {
	for i, s := range f.Held.Stretches {
		if more := f.more(i); i > 0 && (more.RPCs() != 0 || more.Read != 0 || more.Written != 0) {
			return fmt.Errorf("%s: %d waiting and %d watching agents cost %+v an hour, want nothing", f.Kind, s.Waiting, s.Watching, more)
		}
	}
	attempts := f.Held.Elsewhere.Calls["BatchGetDocuments"] + f.Held.Elsewhere.Calls["ExecuteStreamingSql"]
	if told := f.Held.Told.RPCs(); told > f.Held.Elsewhere.RPCs() {
		return fmt.Errorf("%s: an instance that is told of renewals makes %d calls in %d leases, and one that is not %d", f.Kind, told, stretchLeases, f.Held.Elsewhere.RPCs())
	}
	if most := stretchLeases*beats/(beats-1) + 1; attempts > most {
		return fmt.Errorf("%s: at another instance there were %d attempts in %d leases, want at most %d", f.Kind, attempts, stretchLeases, most)
	}
	for _, c := range f.Crowds {
		if alone := f.Crowds[0].PerRenewal(); c.Leaders > 1 && c.PerRenewal() > alone/2 {
			return fmt.Errorf("%s: a renewal of %d leaders at the same time costs %v calls, want half of %v at most", f.Kind, c.Leaders, c.PerRenewal(), alone)
		}
	}
	for _, t := range f.Ballots {
		if t.Release.RPCs() != 2 || t.Bids.RPCs() > 2*t.Instances || t.Grant.RPCs() != 2 {
			return fmt.Errorf("%s: a takeover by ballot over %d instances costs %+v, want 2 RPCs for the release, each bid and the grant at most", f.Kind, t.Instances, t)
		}
	}
	for _, t := range f.Turns {
		if t.Cost.RPCs() != f.Turns[0].Cost.RPCs() || t.Cost.Read != f.Turns[0].Cost.Read || t.Cost.Written != beatsAnHour {
			return fmt.Errorf("%s: renewals through %d instances cost %+v an hour, through one %+v", f.Kind, t.Instances, t.Cost, f.Turns[0].Cost)
		}
	}
	if reads := f.Readers.RPCs(); reads > readsAnHour {
		return fmt.Errorf("%s: readers of one election made %d reads in an hour, want at most %d", f.Kind, reads, readsAnHour)
	}
	return nil
}

func (r report) data() map[string]any {
	last := len(r.f.Held.Stretches) - 1
	return map[string]any{
		"Leases": stretchLeases, "Lease": stretchLease.Seconds(), "LeasesAnHour": leasesAnHour, "Beats": beatsAnHour, "Looks": looksAnHour,
		"Early":           fmt.Sprintf("%.0f", float64(beatsAnHour)/0.9),
		"Hours":           r.hours(),
		"Join":            r.both(func(f Found) Cost { return f.Held.Stretches[1].Begin }),
		"Joined":          r.f.joined().plus(r.s.joined()).RPCs(),
		"Watch":           r.both(func(f Found) Cost { return f.Held.Stretches[last].Begin }),
		"HandOver":        r.both(func(f Found) Cost { return f.Held.HandOver }),
		"HandOverRead":    r.f.Held.HandOver.Read,
		"HandOverWritten": r.f.Held.HandOver.Written,
		"Firestore":       OperationsTable(r.f.Kind, r.f.Operations),
		"Spanner":         OperationsTable(r.s.Kind, r.s.Operations),
		"Ballots":         r.ballots(),
		"Waiting":         r.waiting(),
		"Elections":       r.elections(),
		"Together":        r.together(),
		"Rivals":          r.rivals(),
		"Reasons":         reasons(),
	}
}

// joined is what all candidates cost that came after the first.
func (f Found) joined() (all Cost) {
	for _, s := range f.Held.Stretches[2:] {
		if s.Watching == 0 {
			all = all.plus(s.Begin)
		}
	}
	return all
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

// hours is what an hour of each role costs.
func (r report) hours() string {
	t := newTable("an hour of", "Firestore: RPCs", "documents read", "documents written", "Spanner: RPCs", "rows read", "rows written")
	add := func(name string, of func(Found) Cost) {
		f, s := of(r.f), of(r.s)
		t.add(name, count(f.RPCs()), count(f.Read), count(f.Written), count(s.RPCs()), count(s.Read), count(s.Written))
	}
	add("a leader", func(f Found) Cost { return f.Held.Stretches[0].AnHour() })
	for i, t := range r.f.Turns {
		if t.Instances > 1 {
			add(fmt.Sprintf("a leader whose renewals reach %d instances in turn", t.Instances), func(f Found) Cost { return f.Turns[i].Cost })
		}
	}
	add("100 leaders, renewed in one batch", func(f Found) Cost { return f.operation(batchName).scaled(beatsAnHour, 1) })
	add("a process that leads 100 elections with the Go SDK", func(f Found) Cost { return f.operation(processName).scaled(beatsAnHour, 1) })
	for i, s := range r.f.Held.Stretches[1:] {
		name := fmt.Sprintf("%s waiting candidates, together", count(s.Waiting))
		if s.Waiting == 1 {
			name = "1 waiting candidate"
		}
		if s.Watching > 0 {
			name = fmt.Sprintf("%s watchers, together", count(s.Watching))
		}
		add(name, func(f Found) Cost { return f.more(i + 1) })
	}
	add(fmt.Sprintf("%d readers of one election from the cache, together, at one instance", readers), func(f Found) Cost { return f.Readers })
	add("at most: an election with waiting candidates at another instance than the one that renews it", func(f Found) Cost {
		return f.operation(refusedName).scaled(attemptsAnHour, 1)
	})
	add("at most: the same while the instances tell each other of renewals (`--members`)", func(f Found) Cost { return f.Held.Told.scaled(leasesAnHour, stretchLeases) })
	add("an instance, whatever it serves: reading the outbox", func(f Found) Cost { return f.operation(lookName).scaled(looksAnHour, 1) })
	add("an instance that follows a journal where nothing is appended, while it hears the others", func(f Found) Cost {
		return f.operation(headName).scaled(followsAnHour, 1)
	})
	return t.String()
}

// more is what the agents that came with a stretch cost in an hour, and those before them but the
// leader.
func (f Found) more(stretch int) Cost {
	base := 0
	if f.Held.Stretches[stretch].Watching > 0 {
		base = stretch - 1
	}
	return f.Held.Stretches[stretch].AnHour().minus(f.Held.Stretches[base].AnHour())
}

// ballots is what changes of leader by a ballot cost.
func (r report) ballots() string {
	t := newTable("RPCs of a change of leader by ballot, and of these how many bids write", "Firestore: release", "bids", "written", "grant", "Spanner: release", "bids", "written", "grant")
	for i, f := range r.f.Ballots {
		row := []string{f.name()}
		for _, f := range []Takeover{f, r.s.Ballots[i]} {
			row = append(row, count(f.Release.RPCs()), count(f.Bids.RPCs()), count(f.Writes), count(f.Grant.RPCs()))
		}
		t.add(row...)
	}
	return t.String()
}

// waiting is how the cost grows with the waiting candidates.
func (r report) waiting() string {
	numbers := []int{1, 100, 10_000}
	t := newTable(heads("", numbers)...)
	for _, f := range []Found{r.f, r.s} {
		store, _ := words(f.Kind)
		cells := []string{"Regent on " + store}
		for i, s := range f.Held.Stretches {
			for _, n := range numbers {
				if s.Waiting == n && s.Watching == 0 {
					cells = append(cells, count(f.more(i).RPCs()))
				}
			}
		}
		t.add(cells...)
	}
	t.add(cells(ownName, numbers, func(n int) int { return n * waitsAnHour })...)
	for _, rival := range Rivals() {
		t.add(cells(rival.Name, numbers, rival.waited)...)
	}
	return t.String()
}

// elections is how the cost grows with the elections that are led.
func (r report) elections() string {
	numbers := []int{1, 100, 1000}
	t := newTable(heads("", numbers)...)
	for _, f := range []Found{r.f, r.s} {
		store, _ := words(f.Kind)
		t.add(cells("Regent on "+store, numbers, func(n int) int { return f.grown(n).Single.RPCs() * beatsAnHour })...)
		t.add(cells("Regent on "+store+", in batches", numbers, func(n int) int { return f.grown(n).Batched.RPCs() * beatsAnHour })...)
	}
	t.add(cells(ownName, numbers, func(n int) int { return n * beatsAnHour })...)
	t.add(cells(ownName+", by processes that lead up to 100 each with the Go SDK", numbers, func(n int) int { return (n + many - 1) / many * beatsAnHour })...)
	for _, rival := range Rivals() {
		t.add(cells(rival.Name, numbers, rival.led)...)
	}
	return t.String()
}

// together is what a renewal costs beside others at the same instance.
func (r report) together() string {
	t := newTable(heads("", crowds)...)
	for _, f := range []Found{r.f, r.s} {
		store, _ := words(f.Kind)
		row := []string{"RPCs of " + store}
		for _, c := range f.Crowds {
			row = append(row, strconv.FormatFloat(c.PerRenewal(), 'f', 2, 64))
		}
		t.add(row...)
	}
	return t.String()
}

// heads are those of a table with a column for each number.
func heads(first string, numbers []int) []string {
	return cells(first, numbers, func(n int) int { return n })
}

// cells are a row with a figure for each number.
func cells(first string, numbers []int, figure func(int) int) []string {
	row := []string{first}
	for _, n := range numbers {
		row = append(row, count(figure(n)))
	}
	return row
}

// rivals is the table of what others need.
func (r report) rivals() string {
	t := newTable("", "lease", "a leader, calls", "of these durable writes", "a waiting candidate, calls")
	leader := r.f.Held.Stretches[0].AnHour()
	t.add("Regent's calls of Firestore", "30 s", count(leader.RPCs()), count(leader.Written), count(r.f.more(1).RPCs()))
	t.add(ownName, "30 s", count(beatsAnHour), "", count(waitsAnHour))
	for _, rival := range Rivals() {
		t.add(rival.Name, rival.Lease, count(rival.led(1)), count(rival.Writes), count(rival.Waiting))
	}
	return t.String()
}

// reasons says why others need what they need, and where that is written.
func reasons() string {
	var text strings.Builder
	for _, r := range Rivals() {
		fmt.Fprintf(&text, "- **%s.** %s Source: %s.\n", r.Name, r.Why, r.Source)
	}
	return text.String()
}
