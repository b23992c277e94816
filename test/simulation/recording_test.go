package simulation_test

import (
	"testing"

	"regent/test/checker"
	"regent/test/simulation"
)

func TestWhatWasRecordedPassesEveryChecker(t *testing.T) {
	t.Parallel()
	calls := 0
	var all checker.Recording
	// Half of the seeds: 28 is the first that catches the planted line-lease-made-up-from-event.
	for seed := range uint64(*seeds / 2) {
		r := simulation.Run(simulation.Config{Seed: seed, Leases: 30, Record: true})
		if err := r.Err(); err != nil {
			t.Error(err)
		}
		calls += len(r.Recording.Calls)
		gather(&all, r.Recording)
		for _, f := range checker.All(r.Recording, r.Guard, r.Guard) {
			if err := f.Err(); err != nil {
				t.Errorf("seed %d (%s): %s: %v", seed, r.Plan, f.Name, err)
			}
		}
	}
	for what, n := range map[string]int{
		"calls": calls, "strong reads": len(all.Calls), "beliefs": len(all.Beliefs), "writes": len(all.Writes), "willing": len(all.Willing),
		"complete consumers": len(all.Consumers), "changes": len(all.Changes), "heartbeats": len(all.Heartbeats), "readings": len(all.Readings),
	} {
		if t.Logf("%d %s", n, what); n == 0 {
			t.Errorf("no %s were recorded", what)
		}
	}
}

// gather adds what a checker needs something of: of the calls the strong reads that were answered,
// of the consumers those that have heard of something, and to the end.
func gather(all *checker.Recording, r checker.Recording) {
	for _, c := range r.Calls {
		if c.Verb == checker.Get && c.Answer != nil && c.Code == "" {
			all.Calls = append(all.Calls, c)
		}
	}
	for _, c := range r.Consumers {
		if !c.Partial && len(c.Got) > 0 {
			all.Consumers = append(all.Consumers, c)
		}
	}
	all.Beliefs, all.Writes, all.Willing = append(all.Beliefs, r.Beliefs...), append(all.Writes, r.Writes...), append(all.Willing, r.Willing...)
	all.Changes, all.Heartbeats, all.Readings = append(all.Changes, r.Changes...), append(all.Heartbeats, r.Heartbeats...), append(all.Readings, r.Readings...)
}
