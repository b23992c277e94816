package telemetry_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/telemetry"
	"regent/leadership/telemetry/telemetrytest"
)

// alert is one of Terraform's, with its default threshold.
type alert struct {
	Metric    string
	Threshold float64
}

// alerts reads those that Terraform's own test has written.
func alerts(t *testing.T) map[string]alert {
	t.Helper()
	text, err := os.ReadFile("../../test/terraform/testdata/alerts.json")
	require.NoError(t, err)
	var all map[string]alert
	require.NoError(t, json.Unmarshal(text, &all))
	return all
}

func TestEveryAlertUsesAnExistingMetric(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"http.server.request.duration": true}
	for _, m := range telemetry.Catalogue() {
		known[m.Name] = true
	}
	for name, a := range alerts(t) {
		if !known[a.Metric] {
			t.Errorf("alert %s is about %q, which is not measured", name, a.Metric)
		}
	}
}

func TestFewMembersCrossTheThresholdOfTheirAlert(t *testing.T) {
	a := alerts(t)["low-participation"]
	story(t, func(w *telemetrytest.Fixture) {
		w.Lead("jobs", "ann")
		join(w, "jobs", "flo", leadership.RoleFollower, 0)
		w.Settle(2 * time.Second)
		if part := w.Read()[a.Metric]; part < a.Threshold || part > 0.5 {
			t.Errorf("one of two follows, and %s is %v, below %v", a.Metric, part, a.Threshold)
		}
		join(w, "jobs", "fox", leadership.RoleFollower, 0)
		w.Settle(2 * time.Second)
		if part := w.Read()[a.Metric]; part >= a.Threshold {
			t.Errorf("one of three follows, and %s is %v, not below %v", a.Metric, part, a.Threshold)
		}
	})
}

// follow lets a follower say that it has applied so much of the journal.
func follow(w *telemetrytest.Fixture, applied leadership.Index) {
	w.Helper()
	id := leadership.CandidateID(fmt.Sprint("follower-", applied))
	join(w, "jobs", id, leadership.RoleFollower, 0)
	_, err := w.Service.ReadJournal(w.Context(), leadership.JournalRequest{Election: "jobs", After: applied, Member: id, Applied: applied})
	require.NoError(w, err)
	w.Settle(2 * time.Second)
}

// Each situation that pages an operator crosses the threshold that Terraform sets, and not a moment
// before.
func TestEachSituationCrossesTheThresholdOfItsAlert(t *testing.T) {
	const window = 5 * time.Minute // of the rate in the alert's query
	for name, c := range map[string]struct {
		almost, enough func(*telemetrytest.Fixture)
		per            float64 // seconds, of a rate
		label          string  // of the series that the alert is about
	}{
		"no-leader": {
			almost: func(w *telemetrytest.Fixture) { w.NoLeader("jobs", 59*time.Second) },
			enough: func(w *telemetrytest.Fixture) { w.Settle(5 * time.Second) },
		},
		"flapping": {
			almost: func(w *telemetrytest.Fixture) { w.Flap("reports", 5, time.Second) },
			enough: func(w *telemetrytest.Fixture) { w.Flap("reports", 1, time.Second) },
		},
		"many-elections": {
			almost: func(w *telemetrytest.Fixture) { w.Flap("jobs", 1, time.Second); w.Flap("reports", 1, time.Second) },
			enough: func(w *telemetrytest.Fixture) { w.Settle(59 * time.Minute); w.Flap("jobs", 1, time.Second) },
		},
		"read-only": {
			almost: func(w *telemetrytest.Fixture) { w.Keep(quorum(w, "jobs"), time.Minute) },
			enough: func(w *telemetrytest.Fixture) {
				w.Keep(quorum(w, "reports"), 80*time.Second) // its witness does not join again
			},
		},
		"contention": {
			almost: func(w *telemetrytest.Fixture) { w.Contend("planner", 5*int(window.Seconds()), 200*time.Millisecond) },
			enough: func(w *telemetrytest.Fixture) { w.Contend("report", 10, time.Millisecond) },
			per:    window.Seconds(),
		},
		"deposed": {
			almost: func(w *telemetrytest.Fixture) {
				limit(w, "jobs", leadership.TermPolicy{Budget: leadership.Counters{Calls: 10}})
				_ = report(w, w.Lead("jobs", "ann"), `{"calls":10}`)
			},
			enough: func(w *telemetrytest.Fixture) { _ = report(w, w.Lead("jobs", "ann"), `{"calls":11}`) },
			label:  "type=deposed",
		},
		"approval-waits": {
			almost: func(w *telemetrytest.Fixture) {
				limit(w, "jobs", leadership.TermPolicy{Approval: leadership.ApprovalPolicy{Every: 20 * time.Second}})
				w.Lead("jobs", "ann")
				w.Settle(20*time.Second + 899*time.Second)
			},
			enough: func(w *telemetrytest.Fixture) { w.Settle(5 * time.Second) },
		},
		"paused": {
			almost: func(w *telemetrytest.Fixture) {
				w.Lead("jobs", "ann")
				order(w, "jobs", leadership.Order{Kind: leadership.OrderPause, For: 2 * time.Hour})
				w.Settle(3599 * time.Second)
			},
			enough: func(w *telemetrytest.Fixture) { w.Settle(5 * time.Second) },
		},
		"hand-over": {
			almost: func(w *telemetrytest.Fixture) {
				ann := w.Lead("jobs", "ann")
				handOver(w, ann, "bob", time.Second)
				w.Release(ann)
			},
			enough: func(w *telemetrytest.Fixture) {
				handOver(w, w.Lead("jobs", "ann"), "bob", time.Second)
				w.Settle(time.Minute)
			},
			label: "outcome=timed_out",
		},
		"journal-lag": {
			almost: func(w *telemetrytest.Fixture) {
				ann := w.Lead("jobs", "ann")
				for i := range leadership.Index(3) {
					r := leadership.AppendRequest{LeaseRequest: ann, After: 500 * i, Entries: slices.Repeat([]leadership.Entry{{Data: []byte("1")}}, 500)}
					_, err := w.Service.AppendJournal(w.Context(), r)
					require.NoError(w, err)
				}
				follow(w, 500)
			},
			enough: func(w *telemetrytest.Fixture) { follow(w, 499) },
		},
		"split-brain": {
			almost: func(w *telemetrytest.Fixture) { w.Flap("jobs", 2, time.Minute) },
			enough: func(w *telemetrytest.Fixture) {
				zombie := w.Lead("jobs", "ann")
				w.Settle(time.Minute) // it was cut off, and does not know it
				w.Keep(w.Lead("jobs", "bob"), time.Minute)
				_, _ = w.Service.Renew(w.Context(), zombie)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, ok := alerts(t)[name]
			require.True(t, ok, "there is no alert %s", name)
			story(t, func(w *telemetrytest.Fixture) {
				var labels []string
				if c.label != "" {
					labels = append(labels, c.label)
				}
				before := w.Read()
				value := func() float64 {
					v := w.Read().Since(before).Sum(a.Metric, labels...)
					if c.per > 0 {
						v /= c.per
					}
					return v
				}
				if c.almost(w); value() > a.Threshold {
					t.Errorf("%s is %v already, above %v", a.Metric, value(), a.Threshold)
				}
				if c.enough(w); value() <= a.Threshold {
					t.Errorf("%s is %v, not above %v", a.Metric, value(), a.Threshold)
				}
			})
		})
	}
}
