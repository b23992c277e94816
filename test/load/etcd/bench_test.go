package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// The test binary also is etcd.
func TestMain(m *testing.M) {
	if is, err := child(); is {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// Every contest runs once, with real servers.
func TestEveryContestRuns(t *testing.T) {
	found, err := measure(t.Context(), plan{
		Rounds: 1, Warm: 10 * time.Millisecond, Long: 500 * time.Millisecond, Connections: []int{1, 64}, Handovers: 1,
	})
	require.NoError(t, err)
	for _, c := range found.Contests {
		for _, l := range c.Lines() {
			if l.Count <= 0 || l.Rate.Median <= 0 || l.P50.Median <= 0 {
				t.Errorf("%s, %s, %s: %+v", c.Title, l.Row, l.Name, l)
			}
		}
	}
	if n := len(found.Contests); n != 6 {
		t.Errorf("%d contests were held, want 6", n)
	}
	report, err := found.report()
	if err != nil {
		t.Error(err)
	}
	for _, never := range []string{"<no value>", "%!", "NaN", "Inf", "\n\n\n"} {
		if strings.Contains(report, never) {
			t.Errorf("the report has %q:\n%s", never, report)
		}
	}
}

func TestOperationCountsByThePartOfItsTimeInTheRound(t *testing.T) {
	t.Parallel()
	zero := time.Now()
	at := func(s int) time.Time { return zero.Add(time.Duration(s) * time.Second) }
	round := span{at(10), at(20)}
	for _, c := range []struct {
		begin, end int
		want       float64
	}{
		{10, 20, 1},
		{8, 12, 0.5},
		{19, 23, 0.25},
		{5, 25, 0.5},
		{1, 2, 0},
		{15, 15, 0}, // no time at all: the clock's, not an operation's
	} {
		if got := round.part(at(c.begin), at(c.end)); got != c.want {
			t.Errorf("from %v to %v: %v, want %v", c.begin, c.end, got, c.want)
		}
	}
}

// The ratios of 1 and 4 and of 5 and 2 in their rounds have the median 1.375, not that of all.
func TestGoalsAreJudgedByTheMedianOfTheRoundsRatios(t *testing.T) {
	t.Parallel()
	rounds := func(rates ...float64) (all []Sample) {
		for _, rate := range rates {
			all = append(all, Sample{Count: rate, Seconds: 1, P99: rate})
		}
		return all
	}
	r := Result{Contests: []Contest{{
		Of: "connections", Entrants: make([]Entrant, 2), Pairs: beside("things / others", 1.3, 1.4),
		Rows: []Row{{1, [][]Sample{rounds(4, 2), rounds(1, 5)}}, {64, [][]Sample{rounds(4, 2), rounds(1, 5)}}},
	}}}
	var got []string
	for _, line := range r.Goals() {
		for _, v := range line.Verdicts {
			got = append(got, fmt.Sprint(line.Name, "; ", v.Where, "; ", v.Goal, "; ", spread(v.Ratio), "; ", v.Met))
		}
	}
	want := []string{
		"things / others; 64 connections; ≥ 1.3; 1.38 (0.25–2.50); true", "things / others; 1 connection; ≥ 1.4; 1.38 (0.25–2.50); false",
		"p99 of things; 64 connections; ≤ 1; 1.38 (0.25–2.50); false", "p99 of things; 1 connection; ≤ 1; 1.38 (0.25–2.50); false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the goals (-want +got):\n%s", diff)
	}
}

// The committed report is the one of the committed results, and says why a goal is missed.
func TestCommittedReportMatchesResults(t *testing.T) {
	t.Parallel()
	here, err := readResult(".")
	require.NoError(t, err)
	want, err := here.report()
	require.NoError(t, err)
	got, err := os.ReadFile(reportFile)
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Errorf("%s is not what `go run . -render` writes: %v\n%s", reportFile, err, diff)
	}
	if strings.Contains(want, "No reason is written down") {
		t.Error("write the reason of a missed goal into reasons.go, then run with -render")
	}
}
