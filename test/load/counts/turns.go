package counts

import (
	"context"
	"fmt"

	"regent/leadership"
	"regent/leadership/instance"
)

// Turns is the cost of renewals of one lease that reach several instances in turn.
type Turns struct {
	Instances int
	Cost      Cost
}

// fleets returns the numbers of instances to count.
func fleets() []int { return []int{1, 2, 4} }

// InTurn renews a lease so often, through one instance after the other, as a leader does that
// brings its ticket. The instances look at no end of it meanwhile: it is long.
func InTurn(ctx context.Context, p Place, renewals int, instances ...int) (found []Turns, err error) {
	for _, n := range instances {
		cost, err := inTurn(ctx, p, renewals, n)
		if err != nil {
			return nil, err
		}
		found = append(found, Turns{Instances: n, Cost: cost})
	}
	return found, nil
}

func inTurn(ctx context.Context, p Place, renewals, n int) (cost Cost, err error) {
	fleet := make([]*instance.Instance, n)
	handles := make([]Handle, n)
	for i := range n {
		h, err := p.Open(ctx)
		if err != nil {
			return Cost{}, err
		}
		defer h.Close()
		handles[i] = h
		if fleet[i], err = instance.New(instance.Config{Store: h, Name: fmt.Sprint("regent-test-", i)}); err != nil {
			return Cost{}, err
		}
	}
	ann := newAgent("ann")
	ask := ann.ask(leadership.Election(fmt.Sprint("turns-", n)))
	ask.LeaseDuration = leadership.MaxLeaseDuration
	g, err := fleet[0].Acquire(ctx, ask)
	if err != nil {
		return Cost{}, err
	}
	lease := ann.lease(ask.Election, g.Token)
	lease.Ticket = g.Ticket
	for _, h := range handles {
		h.Take()
	}
	for i := range renewals {
		l, err := fleet[(i+1)%n].Renew(ctx, lease)
		if err != nil {
			return Cost{}, err
		}
		lease.Ticket = l.Ticket
	}
	for _, h := range handles {
		asked, _ := h.Take()
		cost = cost.plus(asked)
	}
	return cost, nil
}
