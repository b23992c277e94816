package etcd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"regent/test/load"
)

// leastWait is the shortest wait of a candidate. etcd brings a new watcher up to date only every
// 100 ms; most candidates wait for longer than that.
const leastWait = 150 * time.Millisecond

// candidate wants to lead one election, over a connection of its own.
type candidate interface {
	campaign(context.Context) error // returns when it leads
	resign(context.Context) error
	close()
}

// handovers returns a race in which the leaders of n elections change at once, 100 times in all, or
// 4 times each. A sample is from when a release was sent to when the next leader knows.
func (b *bench) handovers(create func(id, election string) (candidate, error)) race {
	return func(ctx context.Context, n int) (sample, error) {
		took := make([][]time.Duration, n)
		err := load.Each(n, n, func(i int) error {
			var two [2]candidate
			for k, id := range []string{"ann", "bob"} {
				c, err := create(id, fmt.Sprintf("handover-%d", i))
				if err != nil {
					return err
				}
				defer c.close()
				two[k] = c
			}
			var err error
			took[i], err = swap(ctx, two, max(int(b.long/(20*time.Millisecond))/n, 4))
			return err
		})
		return sampleOf(slices.Concat(took...)), err
	}
}

// swap lets two candidates lead in turn.
func swap(ctx context.Context, two [2]candidate, times int) (took []time.Duration, err error) {
	leader, next := two[0], two[1]
	if err := leader.campaign(ctx); err != nil {
		return nil, err
	}
	for range times {
		told, failed := make(chan time.Time, 1), make(chan error, 1)
		go func() {
			if err := next.campaign(ctx); err != nil {
				failed <- err
				return
			}
			told <- time.Now()
		}()
		<-time.After(leastWait)
		sent := time.Now()
		if err := leader.resign(ctx); err != nil {
			return nil, err
		}
		select {
		case at := <-told:
			took = append(took, at.Sub(sent))
		case err := <-failed:
			return nil, err
		}
		leader, next = next, leader
	}
	return took, leader.resign(ctx)
}
