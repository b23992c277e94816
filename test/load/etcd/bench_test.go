package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"
)

// The test binary also is etcd, the leader that is killed, and the crowd.
func TestMain(m *testing.M) {
	if is, err := child(context.Background()); is {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// Every contest that does not take long by itself is run once, with real servers.
func TestEveryContestRuns(t *testing.T) {
	t.Parallel()
	p := plan{
		Mode: "tiny", Rounds: 1, Warm: 10 * time.Millisecond, Long: 60 * time.Millisecond, Connections: []int{2},
		Watchers: 5, Changes: 3, HandoverSizes: []int{1}, Handovers: 1, Growth: []int{1, 3},
		Led: []int{1, 3}, LedLease: 4 * time.Second, LedLeases: 1,
	}
	short := regexp.MustCompile("^(cycle|renew|batch|strong|cached|watch|handover|growth)$")
	found, err := measure(t.Context(), p, options{dir: t.TempDir(), out: t.TempDir()}, short)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found.Contests {
		for _, l := range c.Lines() {
			if l.Count <= 0 || l.Errors > 0 || l.Rate.Median <= 0 {
				t.Errorf("%s, %s, %s: %+v", c.ID, l.Row, l.Name, l)
			}
		}
	}
	if n := len(found.Contests); n != 7 {
		t.Errorf("%d contests were held, want 7", n)
	}
	for _, g := range found.Growth {
		if len(g.Rows) != 2 {
			t.Errorf("%s: %d rows, want 2", g.Title, len(g.Rows))
		}
		for _, row := range g.Rows {
			if len(row) != len(g.Columns) || row[0] < 1 || row[1] <= 0 {
				t.Errorf("%s: %v under %v", g.Title, row, g.Columns)
			}
		}
	}
	if _, err := found.report(""); err != nil {
		t.Error(err)
	}
}
