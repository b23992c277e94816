package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"regent/cmd/regent/internal/apply"
	"regent/leadership"
	"regent/leadership/wire"
)

// many selects the elections of an order, beside a pattern of their names.
type many struct {
	leader leadership.CandidateID
	dryRun bool
}

const manyHelp = `

In place of one election name a pattern, with a * at the end, or --leader, or both: the order is given to each existing
election with such a name and that leader, a few at a time, and goes on after an error. The exit code is 9 if it failed
for some of them. Elections created later are not affected. Try --dry-run first.

Orders on an election apply to its seats, so every order but evict is given to the election. Seats whose election is not
selected are skipped, and the exit code is that of a failure.`

func (m *many) add(cmd *cobra.Command) {
	cmd.Use = strings.Replace(cmd.Use, "ELECTION", "ELECTION|'PATTERN*' [--leader ID]", 1)
	cmd.Long += manyHelp
	cmd.Flags().Var(&value[leadership.CandidateID]{&m.leader, "", "ID", parseCandidate}, "leader", "only elections that this candidate leads now: all of them, if none is named")
	cmd.Flags().BoolVar(&m.dryRun, "dry-run", false, "do nothing; print to which elections the order would be given")
}

// meant reports whether the order is for many elections.
func (m *many) meant(args []string) bool {
	return *m != many{} || leadership.Election(args[0]).IsPattern()
}

// args expects the name of an election or, for an order on many, a pattern or --leader.
func (o orderHelp) args(m *many) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if o.kind.Halts() {
			if len(args) != 1 {
				return fmt.Errorf("%s takes one argument, a pattern of elections, but got %d", cmd.Name(), len(args))
			}
			order := leadership.Order{Kind: o.kind, Election: leadership.Election(args[0]), Reason: "-", Actor: "-"}
			if o.kind == leadership.OrderHalt {
				order.For = leadership.MaxOrder
			}
			return order.Validate()
		}
		if len(args) != 1 || !leadership.Election(args[0]).IsPattern() {
			if len(args) > 0 || m.leader == "" {
				if err := oneElection(cmd, args); err != nil {
					return err
				}
			}
		} else if !o.many {
			return fmt.Errorf("%s is about one election, and %q stands for many; name one", o.kind, args[0])
		} else if err := leadership.Election(args[0]).ValidatePattern(); err != nil {
			return err
		}
		for _, flag := range []string{"token", "if-revision"} {
			if cmd.Flags().Changed(flag) && m.meant(args) {
				return fmt.Errorf("--%s is for an order that names one election; leave it out: each is read first", flag)
			}
		}
		return nil
	}
}

// ordersAtOnce is how many of the orders for many are under way at a time.
const ordersAtOnce = 8

// orderMany gives an order to the selected elections, and prints the result for each.
func (c *cli) orderMany(ctx context.Context, m many, names string, r leadership.Order) error {
	patient, err := c.connectPatiently()
	if err != nil {
		return err
	}
	leases, err := apply.List(ctx, patient, strings.TrimSuffix(names, "*"))
	if err != nil {
		return err
	}
	leases = slices.DeleteFunc(leases, func(l leadership.Lease) bool {
		return !leadership.Election(names).Covers(l.Election) || strings.HasPrefix(string(l.Election), wire.OwnPrefix)
	})
	if len(leases) == 0 {
		return &leadership.Error{Code: leadership.NotFound, Detail: fmt.Sprintf("there is no election %q", names)}
	}
	leases = slices.DeleteFunc(leases, func(l leadership.Lease) bool {
		return (m.leader != "" || r.Kind == leadership.OrderEvict) && (l.State != leadership.Held || m.leader != "" && l.LeaderID != m.leader)
	})
	if r.Kind != leadership.OrderEvict {
		leases = withoutOrderedSeats(leases)
	}

	signalled, stop := untilSignal(ctx)
	defer stop()
	t, table := newTally(c), columns{[]string{"ELECTION", "LEADER", "RESULT"}, make([]int, 3)}
	for _, l := range leases {
		table.widths[0], table.widths[1] = max(table.widths[0], len(l.Election)), max(table.widths[1], len(l.LeaderID))
	}
	var failed error // the first
	for chunk := range slices.Chunk(leases, ordersAtOnce) {
		results := make([]orderResult, len(chunk))
		var all sync.WaitGroup
		for i, l := range chunk {
			results[i] = newOrderResult(l)
			switch {
			case l.Seat > 0 && r.Kind != leadership.OrderEvict:
				results[i].skip(l)
			case m.dryRun:
			case signalled.Err() != nil:
				results[i].Result, failed = stepNotTried, cmp.Or(failed, errors.New("interrupted; give the order again for the rest"))
			default:
				all.Go(func() { results[i].give(ctx, patient, l, r) })
			}
		}
		all.Wait()
		for _, result := range results {
			result.print(t, &table)
			failed = cmp.Or(failed, result.err)
		}
	}
	t.summary(len(leases), "none that the order is for", hasEnded[stepPlanned], hasEnded[stepDone], hasEnded[stepFailed], hasEnded[stepSkipped], hasEnded[stepNotTried])
	if t.counts[hasEnded[stepDone]] > 0 && slices.ContainsFunc(leases, func(l leadership.Lease) bool { return l.State == leadership.Held }) {
		t.err = cmp.Or(t.err, c.tellFrozen(r, "Each leader"))
	}
	if m.dryRun {
		failed = nil
	}
	if failed != nil && t.counts[hasEnded[stepDone]] > 0 {
		return exitStatus{exitSome, failed}
	}
	return cmp.Or(failed, t.err)
}

// withoutOrderedSeats leaves out the seats of elections that are in the list: an order on an
// election applies to its seats.
func withoutOrderedSeats(leases []leadership.Lease) []leadership.Lease {
	named := make(map[leadership.Election]bool, len(leases))
	for _, l := range leases {
		named[l.Election] = true
	}
	return slices.DeleteFunc(leases, func(l leadership.Lease) bool { return named[l.Whole()] })
}

// orderResult is the result of an order for one of many elections, as a document for programs.
type orderResult struct {
	Election leadership.Election    `json:"election"`
	LeaderID leadership.CandidateID `json:"leaderId,omitzero"`     // as listed
	Token    leadership.Token       `json:"fencingToken,omitzero"` // as listed
	Result   applied                `json:"result"`
	Revision leadership.Revision    `json:"revision,omitzero"` // once it is done
	Problem  *wire.Problem          `json:"problem,omitzero"`

	err error
}

func newOrderResult(l leadership.Lease) orderResult {
	r := orderResult{Election: l.Election, Token: l.Token, Result: stepPlanned}
	if l.State == leadership.Held {
		r.LeaderID = l.LeaderID
	}
	return r
}

// skip records that a seat was left out, because seats take no such order.
func (o *orderResult) skip(l leadership.Lease) {
	o.Result = stepSkipped
	o.err = leadership.Invalid("election", fmt.Errorf("election %q is a seat of %q, and takes no order but evict; to order it for all seats, name %q", l.Election, l.Whole(), l.Whole()))
}

// give gives the order to a listed election. An eviction names the listed term, so that it ends no
// later one.
func (o *orderResult) give(ctx context.Context, server apply.Server, l leadership.Lease, r leadership.Order) {
	r.Election = l.Election
	if r.Kind == leadership.OrderEvict {
		r.Token = l.Token
	}
	lease, err := server.Do(ctx, r)
	if err != nil {
		o.Result, o.err = stepFailed, err
		return
	}
	o.Result, o.Revision = stepDone, lease.Revision
}

// print prints the result, and counts it.
func (o orderResult) print(t *tally, table *columns) {
	text := hasEnded[o.Result]
	t.counts[text]++
	if o.err != nil {
		o.Problem = new(t.problem(o.err))
		text += ": " + t.sentence(o.err)
	}
	t.keep(t.showRow(o, table, string(o.Election), orDash(o.LeaderID), text))
}
