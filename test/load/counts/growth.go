package main

import (
	"context"
	"slices"

	"regent/emulators"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/test/load"
)

// Growth is what one renewal of each of so many elections costs.
type Growth struct {
	Elections       int
	Single, Batched Cost // in batches of a hundred
}

// Grow renews so many elections, for each of the sizes, one by one and in batches.
func Grow(ctx context.Context, p Place, sizes ...int) ([]Growth, error) {
	h, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	service := leadership.New(h)
	leases, err := granted(ctx, service, newAgent("ann"), slices.Max(sizes))
	if err != nil {
		return nil, err
	}
	var grown []Growth
	for _, n := range sizes {
		g := Growth{Elections: n}
		if g.Single, err = renewEach(ctx, h, service, leases[:n], 1); err != nil {
			return nil, err
		}
		if g.Batched, err = renewEach(ctx, h, service, leases[:n], many); err != nil {
			return nil, err
		}
		grown = append(grown, g)
	}
	return grown, nil
}

// renewEach renews each lease once, at a time so many together.
func renewEach(ctx context.Context, h Handle, service *leadership.Service, leases []leadership.LeaseRequest, at int) (Cost, error) {
	h.Take()
	for batch := range slices.Chunk(leases, at) {
		var err error
		if at == 1 {
			_, err = service.Renew(ctx, batch[0])
		} else {
			err = renewed(service.BatchRenew(ctx, batch))
		}
		if err != nil {
			return Cost{}, err
		}
	}
	asked, relay := h.Take()
	return asked.plus(relay), nil
}

// growthSizes are the numbers of elections to renew. Spanner's emulator looks through the whole
// table for each renewal, and would take minutes for more.
func growthSizes(kind emulators.Kind) []int {
	if kind == emulators.KindSpanner {
		return []int{1, 100}
	}
	return []int{1, 100, 1000}
}

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
	leases, err := granted(ctx, leadership.New(h), newAgent("ann"), slices.Max(leaders))
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

// grown is what one renewal each of so many elections costs: as it was counted, or a multiple of
// what was counted of fewer.
func (f Found) grown(elections int) Growth {
	var last Growth
	for _, g := range f.Growth {
		if elections%g.Elections == 0 {
			last = g
		}
	}
	n := elections / last.Elections
	return Growth{Elections: elections, Single: last.Single.scaled(n, 1), Batched: last.Batched.scaled(n, 1)}
}
