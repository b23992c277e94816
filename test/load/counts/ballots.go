package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"regent/emulators"
	"regent/leadership"
	"regent/leadership/service"
)

// Takeover is the cost of a change of leader by a ballot, with a candidate at each of several
// instances.
type Takeover struct {
	Instances int
	Worst     bool // each candidate is better than those that ask before it, so all bid
	Release   Cost
	Bids      Cost // of all instances
	Writes    int  // how many of them wrote
	Grant     Cost
}

// All returns the total cost.
func (t Takeover) All() Cost { return t.Release.plus(t.Bids).plus(t.Grant) }

// ballotSizes returns the numbers of instances to count.
func ballotSizes() []int { return []int{1, 2, 3, 10} }

const (
	ballotWindow = 15 * time.Second
	// ballotTries is how often the count begins again if the machine was so slow that bids were
	// void before they were counted.
	ballotTries = 5
)

var errSlow = errors.New("the bids were void before they could be counted")

// Ballots counts takeovers over so many instances, each with the best and with the worst order of
// bids. All instances wait for the end of the window together. The others hear of the grant by its
// event, and then ask no more.
func Ballots(ctx context.Context, p Place, instances ...int) ([]Takeover, error) {
	handles := make([]Handle, slices.Max(instances))
	for i := range handles {
		h, err := p.Open(ctx)
		if err != nil {
			return nil, err
		}
		defer h.Close()
		handles[i] = h
	}
	for try := range ballotTries {
		found, err := ballots(ctx, handles, try, instances)
		if !errors.Is(err, errSlow) {
			return found, err
		}
	}
	return nil, errSlow
}

func ballots(ctx context.Context, handles []Handle, try int, instances []int) (found []Takeover, err error) {
	var all []*ballot
	for _, n := range instances {
		for _, worst := range []bool{false, true} {
			if worst && n == 1 {
				continue
			}
			b := &ballot{
				election: leadership.Election(fmt.Sprintf("ballot-%d-%d-%t", try, n, worst)),
				handles:  handles[:n], found: Takeover{Instances: n, Worst: worst},
			}
			for i := range n {
				a := newAgent(leadership.CandidateID(fmt.Sprintf("c%02d", i)))
				ask := a.ask(b.election)
				if ask.Priority = int64(n - i); worst {
					ask.Priority = int64(i)
				}
				b.asks = append(b.asks, ask)
			}
			all = append(all, b)
		}
	}
	for _, step := range []func(*ballot, context.Context) error{(*ballot).hold, (*ballot).release, (*ballot).bid, (*ballot).await, (*ballot).grant} {
		for _, b := range all {
			if err := step(b, ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", b.election, err)
			}
		}
	}
	for _, b := range all {
		found = append(found, b.found)
	}
	return found, nil
}

// ballot is one takeover that is counted.
type ballot struct {
	election leadership.Election
	handles  []Handle
	asks     []leadership.AcquireRequest // of the candidate at each instance
	last     agent                       // the leader before
	turn     time.Time                   // of the best, by the store's clock
	found    Takeover
}

func (b *ballot) service(i int) *service.Service { return service.New(b.handles[i]) }

// count adds what a call at that instance costs.
func (b *ballot) count(i int, to *Cost, call func(*service.Service) error) error {
	b.handles[i].Take()
	err := call(b.service(i))
	asked, _ := b.handles[i].Take()
	*to = to.plus(asked)
	return err
}

// hold lets a leader lead, which release then ends.
func (b *ballot) hold(ctx context.Context) error {
	b.last = newAgent("last")
	ask := b.last.ask(b.election)
	ask.LeaseDuration = time.Hour
	if _, err := b.service(0).Acquire(ctx, ask); err != nil {
		return err
	}
	cmd := leadership.Configure{Config: leadership.Config{Ballot: leadership.BallotPolicy{
		Strategy: leadership.StrategyPriority, Window: ballotWindow,
	}}}
	_, err := b.service(0).Do(ctx, cmd.In(b.election))
	return err
}

func (b *ballot) release(ctx context.Context) error {
	return b.count(0, &b.found.Release, func(s *service.Service) error {
		_, err := s.Do(ctx, leadership.Release{LeaseRequest: b.last.lease(b.election, 1)})
		return err
	})
}

// bid lets the candidate at each instance bid. The instances know that the election is vacant.
func (b *ballot) bid(ctx context.Context) error {
	for i, ask := range b.asks {
		err := b.count(i, &b.found.Bids, func(s *service.Service) error {
			_, err := s.Acquire(ctx, bidding(ask))
			return err
		})
		refused, ok := errors.AsType[*leadership.Error](err)
		switch {
		case err == nil:
			return errSlow
		case !ok || refused.Reason != leadership.ReasonBallot && refused.Reason != leadership.ReasonOutranked:
			return err
		case refused.Reason == leadership.ReasonBallot:
			b.turn = refused.Cause.Until
		}
	}
	b.found.Writes = b.found.Bids.Written
	return nil
}

// await returns once the best candidate's turn has come.
func (b *ballot) await(ctx context.Context) error {
	for {
		now, err := b.service(0).Now(ctx)
		if err != nil || !now.Before(b.turn) {
			return err
		}
		if err := pause(ctx, b.turn.Sub(now)); err != nil {
			return err
		}
	}
}

// grant lets the best candidate ask again.
func (b *ballot) grant(ctx context.Context) error {
	best := 0
	if b.found.Worst {
		best = len(b.asks) - 1
	}
	err := b.count(best, &b.found.Grant, func(s *service.Service) error {
		_, err := s.Acquire(ctx, bidding(b.asks[best]))
		return err
	})
	if errors.Is(err, leadership.LeaseHeld) {
		return errSlow
	}
	return err
}

// bidding returns the request at an instance that knows of the ballot.
func bidding(r leadership.AcquireRequest) leadership.AcquireRequest {
	r.InLine.Writes = true
	return r
}

// name returns the name of the takeover.
func (t Takeover) name() string {
	if t.Worst {
		return fmt.Sprintf("%d instances, the best asks last", t.Instances)
	}
	if t.Instances == 1 {
		return "1 instance"
	}
	return fmt.Sprintf("%d instances, the best asks first", t.Instances)
}

// BallotsTable returns the costs of takeovers, in Markdown.
func BallotsTable(kind emulators.Kind, found []Takeover) string {
	store, unit := words(kind)
	t := newTable("takeover by ballot on "+store, "RPCs: release", "bids", "grant", "in all", "bids written", unit+" read", unit+" written")
	for _, f := range found {
		all := f.All()
		t.add(f.name(), count(f.Release.RPCs()), count(f.Bids.RPCs()), count(f.Grant.RPCs()), count(all.RPCs()), count(f.Writes), count(all.Read), count(all.Written))
	}
	return t.String()
}
