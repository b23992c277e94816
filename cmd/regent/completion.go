package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/client"
)

func (c *cli) completionCommand() *cobra.Command {
	shells := map[string]func(*cobra.Command) error{
		"bash":       func(root *cobra.Command) error { return root.GenBashCompletionV2(c.out, true) },
		"zsh":        func(root *cobra.Command) error { return root.GenZshCompletion(c.out) },
		"fish":       func(root *cobra.Command) error { return root.GenFishCompletion(c.out, true) },
		"powershell": func(root *cobra.Command) error { return root.GenPowerShellCompletionWithDesc(c.out) },
	}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a completion script for bash, zsh, fish or powershell",
		Long: `Print a completion script. With bash, for this session:

  source <(regent completion bash)

Election names are completed from the server if it answers within a second.`,
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || shells[args[0]] == nil {
				return errors.New("completion takes one argument: bash, zsh, fish or powershell")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return shells[args[0]](cmd.Root()) },
	}
}

// completionTimeout limits how long a person waits after pressing Tab.
const completionTimeout = time.Second

// completionLimit is the largest number of names offered.
const completionLimit = 100

// completeElection offers the server's elections. It reports no error: the command itself will.
func (c *cli) completeElection(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 || c.applyEnvironment(cmd) != nil {
		return nil, directive
	}
	var names []string
	c.timeout = min(c.timeout, completionTimeout)
	err := c.ask(cmd.Context(), func(ctx context.Context, server *client.Client) error {
		r := leadership.ListRequest{Prefix: prefix, Limit: completionLimit}
		page, err := server.List(ctx, r)
		for err == nil && len(page.Leases) == 0 && page.Next != "" { // all elections of the page are deleted
			r.After = page.Next
			page, err = server.List(ctx, r)
		}
		for _, lease := range page.Leases {
			names = append(names, cobra.CompletionWithDesc(string(lease.Election), cmp.Or(string(lease.LeaderID), string(lease.State))))
		}
		return err
	})
	if err != nil {
		return nil, directive
	}
	return names, directive
}

// complete sets the values that completion offers for a flag.
func (c *cli) complete(cmd *cobra.Command, flag string, values ...string) {
	// It fails only for an unknown flag or for one that already has completions.
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}
