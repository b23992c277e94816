package line_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
)

// BenchmarkTakeoverByRank measures a release and the grant to the best of 10,000 that stand in
// line, without a ballot; the former leader joins again.
func BenchmarkTakeoverByRank(b *testing.B) {
	for _, s := range []leadership.Strategy{leadership.StrategyFirstCome, leadership.StrategyPriority, leadership.StrategyCapability, leadership.StrategyRandom} {
		b.Run(string(s), func(b *testing.B) {
			c := gather(b, 0)
			_, err := c.service.Configure(b.Context(), leadership.ConfigureRequest{Election: jobs, ConfigureCommand: leadership.ConfigureCommand{
				Config: leadership.Config{Ballot: leadership.BallotPolicy{Strategy: s, Window: leadership.NoWindow}},
			}})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			b.Cleanup(cancel)
			granted := make(chan leadership.Grant)
			for i := range tenThousand {
				r := rated(leadership.CandidateID(fmt.Sprint("agent-", i)), int64(i))
				c.calls.Go(func() {
					for ctx.Err() == nil {
						if g, err := c.queue.Acquire(ctx, r); err == nil {
							granted <- g
						}
					}
				})
			}
			for c.queue.Callers(jobs) < tenThousand {
				runtime.Gosched()
			}
			leader := c.grant
			for b.Loop() {
				l, err := c.service.Release(ctx, of(leader))
				if err != nil {
					b.Fatal(err)
				}
				c.hub.Learn(l, view.Committed, c.hub.Now())
				leader = <-granted
				for c.queue.Callers(jobs) < tenThousand-1 {
					time.Sleep(time.Microsecond)
				}
			}
		})
	}
}
