package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"regent/cmd/regent/internal/apply"
	"regent/leadership"
)

// applied is the result of a step.
type applied string

const (
	stepPlanned  applied = "planned" // nothing was written: --dry-run, or a step is refused
	stepDone     applied = "done"
	stepFailed   applied = "failed" // the error says whether it may have been done nevertheless
	stepSkipped  applied = "skipped"
	stepNotTried applied = "notTried"
)

// outcome is a step and its result, as a document for programs.
type outcome struct {
	Election leadership.Election `json:"election"`
	Action   apply.Action        `json:"action"`
	Result   applied             `json:"result"`
	Revision leadership.Revision `json:"revision,omitzero"` // once it is done
	Place    string              `json:"place,omitzero"`
	Changes  []apply.Member      `json:"changes,omitempty"`
	Refused  string              `json:"refused,omitzero"`
}

// tally counts the results for many elections.
type tally struct {
	*cli
	counts map[string]int // by their word in the summary
	err    error          // the first error of standard output; the work goes on after it
}

func newTally(c *cli) *tally { return &tally{cli: c, counts: map[string]int{}} }

// applyReport prints the result of each step at once: if regent is killed, its output says what was
// done.
type applyReport struct{ *tally }

func (r *applyReport) plan(steps []apply.Step) {
	for _, s := range steps {
		r.print(s, stepPlanned, 0)
	}
	r.summary(len(steps))
}

// carryOut does the steps one after another, until one fails or a signal comes. A signal does not
// interrupt a step.
func (r *applyReport) carryOut(ctx context.Context, server apply.Server, steps []apply.Step) (err error) {
	signalled, stop := untilSignal(ctx)
	defer stop()
	for _, s := range steps {
		var lease leadership.Lease
		result := stepDone
		if err == nil && s.Action != apply.None && signalled.Err() != nil {
			err = errors.New("interrupted; apply again to do the rest")
		}
		switch {
		case err != nil:
			result = stepNotTried
		case s.Action != apply.None:
			if lease, err = s.Do(ctx, server); err != nil {
				result = stepFailed
			}
		}
		r.print(s, result, lease.Revision)
	}
	r.summary(len(steps))
	return err
}

func (r *applyReport) print(s apply.Step, result applied, revision leadership.Revision) {
	o := outcome{Election: s.Election, Action: s.Action, Result: result, Revision: revision, Place: s.Place, Changes: s.Diff}
	if s.Action == apply.None {
		o.Result = stepDone
	}
	if s.Refused != nil {
		o.Refused = r.sentence(s.Refused)
	}
	what := o.says()
	r.counts[what]++
	if s.Action == apply.None && r.output != document {
		return
	}
	rows := [][]string{{fmt.Sprintf("%s %s: %s", signs[o.Action], o.Election, what)}}
	if o.Refused != "" {
		rows = append(rows, []string{"    refused: " + o.Refused})
	}
	for _, m := range o.Changes {
		from, to := apply.Words(m.From), apply.Words(m.To)
		change := cmp.Or(from, "(none)") + " -> " + cmp.Or(to, "(none)")
		if o.Action != apply.Change {
			change = cmp.Or(to, from)
		}
		rows = append(rows, []string{"    " + m.Name, change})
	}
	r.keep(r.show(o, rows))
}

func (t *tally) keep(err error) { t.err = cmp.Or(t.err, err) }

var (
	signs    = map[apply.Action]string{apply.Create: "+", apply.Restore: "+", apply.Change: "~", apply.Delete: "-"}
	verbs    = map[apply.Action]string{apply.Create: "created", apply.Restore: "restored", apply.Change: "changed", apply.Delete: "deleted"}
	inOrder  = []apply.Action{apply.Create, apply.Restore, apply.Change, apply.Delete}
	asItIs   = "as declared"
	hasEnded = map[applied]string{stepPlanned: "to be done", stepDone: "done", stepFailed: "failed", stepSkipped: "skipped", stepNotTried: "not tried"}
)

// says returns the result of a step in words.
func (o outcome) says() string {
	switch {
	case o.Action == apply.None:
		return asItIs
	case o.Result == stepPlanned:
		return "to be " + verbs[o.Action]
	case o.Result == stepDone:
		return verbs[o.Action]
	}
	return hasEnded[o.Result]
}

func (r *applyReport) summary(all int) {
	var kinds []string
	for _, prefix := range []string{"", "to be "} {
		for _, a := range inOrder {
			kinds = append(kinds, prefix+verbs[a])
		}
	}
	r.tally.summary(all, "nothing is declared", append(kinds, hasEnded[stepFailed], hasEnded[stepNotTried], asItIs)...)
}

// summary counts the elections in one line. Documents need none.
func (t *tally) summary(all int, none string, kinds ...string) {
	if t.output == document {
		return
	}
	var parts []string
	for _, what := range kinds {
		if n := t.counts[what]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	text := fmt.Sprintf("%d elections: %s\n", all, cmp.Or(strings.Join(parts, ", "), none))
	if all == 1 {
		text = strings.Replace(text, "elections", "election", 1)
	}
	_, err := t.out.Write([]byte(text))
	t.keep(err)
}
