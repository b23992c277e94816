package main

import (
	"context"
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
			server, err := c.connect()
			if err != nil {
				return err
			}
			leases, err := apply.List(cmd.Context(), patientServer{server, c.timeout}, prefix)
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
	var after leadership.Revision
	cmd := &cobra.Command{
		Use:   "history ELECTION [--after N]",
		Short: "Show what happened to an election, oldest first",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.ask(cmd.Context(), func(ctx context.Context, server *client.Client) error {
				events, err := history(ctx, server, leadership.Election(args[0]), after)
				if err != nil {
					return err
				}
				return c.printEvents(events)
			})
		},
	}
	cmd.Flags().Var(&value[leadership.Revision]{&after, "0", "N", integers[leadership.Revision](0, math.MaxInt64, "a revision is an integer, 0 or more")}, "after", "only events after this revision")
	return c.remote(cmd)
}

func history(ctx context.Context, server *client.Client, e leadership.Election, after leadership.Revision) ([]leadership.Event, error) {
	var events []leadership.Event
	for {
		page, err := server.Events(ctx, leadership.EventsRequest{Election: e, After: after, Limit: leadership.MaxPageSize})
		if err != nil || len(page) == 0 {
			return events, err
		}
		events = append(events, page...)
		after = page[len(page)-1].Revision
	}
}
