package main

import (
	"context"
	"errors"
	"math"

	"github.com/spf13/cobra"

	"regent/cmd/regent/internal/apply"
	"regent/leadership"
	"regent/leadership/client"
)

func (c *cli) statusCommand() *cobra.Command {
	return reading(c, "status", "Show who leads an election", "", (*client.Client).Get, c.printLease)
}

func (c *cli) listCommand() *cobra.Command {
	var prefix string
	cmd := &cobra.Command{
		Use:   "list [--prefix TEXT]",
		Short: "List the elections and who leads them",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			patient, err := c.connectPatiently()
			if err != nil {
				return err
			}
			leases, err := apply.List(cmd.Context(), patient, prefix)
			if err != nil {
				return err
			}
			return c.printLeases(leases)
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "only elections whose names begin with `TEXT`")
	return c.remote(cmd)
}

func (c *cli) historyCommand() *cobra.Command {
	r := leadership.EventsRequest{Limit: leadership.MaxPageSize}
	cmd := &cobra.Command{
		Use:   "history ELECTION [--after N]",
		Short: "Show what happened to an election, oldest first",
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Election = leadership.Election(args[0])
			return answer(cmd.Context(), c, r, history, c.printEvents)
		},
	}
	cmd.Flags().Var(&value[leadership.Revision]{&r.After, "0", "N", integers[leadership.Revision](0, math.MaxInt64, "a revision is an integer, 0 or more")}, "after", "only events after this revision (default: all that are kept)")
	return c.remote(cmd)
}

// history reads all events, page by page; without --after, from the first that is kept.
func history(server *client.Client, ctx context.Context, r leadership.EventsRequest) (events []leadership.Event, err error) {
	for {
		page, err := server.Events(ctx, r)
		if cut, ok := errors.AsType[*leadership.Error](err); ok && cut.Code == leadership.HistoryCompacted && r.After == 0 && cut.Oldest > 1 {
			r.After = cut.Oldest - 1
			continue
		}
		if err != nil || len(page) == 0 {
			return events, err
		}
		events = append(events, page...)
		r.After = page[len(page)-1].Revision
	}
}
