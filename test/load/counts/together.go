package main

import (
	"context"
	"slices"

	"regent/leadership/instance"
	"regent/leadership/service"
	"regent/test/load"
)

// Crowd is what renewals cost one instance with so many leaders, each of which renews again as soon
// as it is answered.
type Crowd struct {
	Leaders, Renewals int
	Cost              Cost
}

// PerRenewal is how many calls of the store there were for each renewal.
func (c Crowd) PerRenewal() float64 { return float64(c.Cost.RPCs()) / float64(c.Renewals) }

// crowds are the numbers of leaders to count. How many renewals go together depends on how long the
// store takes, so the counts of more than one differ a little each time.
var crowds = []int{1, 16, 256}

// crowdRounds is how often each leader renews.
const crowdRounds = 10

// Together lets so many leaders renew at the same time, for each of the numbers.
func Together(ctx context.Context, p Place, leaders ...int) ([]Crowd, error) {
	h, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	inst, err := instance.New(instance.Config{Store: h, Name: "regent-test"})
	if err != nil {
		return nil, err
	}
	leases, err := granted(ctx, service.New(h), newAgent("ann"), slices.Max(leaders))
	if err != nil {
		return nil, err
	}
	var found []Crowd
	for _, n := range leaders {
		h.Take()
		err := load.Each(n, n, func(i int) error {
			for range crowdRounds {
				if _, err := inst.Renew(ctx, leases[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		asked, _ := h.Take()
		found = append(found, Crowd{Leaders: n, Renewals: n * crowdRounds, Cost: asked})
	}
	return found, nil
}
