package instance_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
)

func TestAWitnessInLineIsExplainedAsOne(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.lead(c.a, "ann")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r := c.ask("wit", time.Minute)
			r.Role = leadership.RoleWitness
			c.b.Acquire(ctx, r)
		}()
		synctest.Wait()
		for id, want := range map[leadership.CandidateID]leadership.Reason{"wit": leadership.ReasonWitness, "bob": leadership.ReasonNotAsking} {
			x, err := c.b.Explain(t.Context(), leadership.ExplainRequest{Election: "jobs", CandidateID: id})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(x.Causes, func(c leadership.Cause) bool { return c.Code == want }) {
				t.Errorf("%s: got %+v, want %s", id, x.Causes, want)
			}
		}
		cancel()
		<-done
	})
}
