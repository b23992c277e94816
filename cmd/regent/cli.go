package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"regent/leadership"
)

// cli is one invocation: the state that all commands share.
type cli struct {
	system
	env     map[string]string
	sources map[*cobra.Command][]source

	// Flags of several commands; see addRemote and addOutput.
	server   string
	insecure bool // allow plain HTTP to other machines
	timeout  time.Duration
	bearer   bearerFlags
	output   format

	groups []group

	// started is false until a command runs: an error before that is a usage error.
	started bool
}

func newCLI(sys system) *cli {
	sys.out = output{sys.out}
	c := &cli{system: sys, env: map[string]string{}, sources: map[*cobra.Command][]source{}}
	for _, entry := range sys.environ {
		if name, value, ok := strings.Cut(entry, "="); ok {
			c.env[name] = value
		}
	}
	return c
}

const aboutRegent = `Regent gives a fleet of agents one leader at a time.

A leader holds a lease, which it renews, and a fencing token, which rises with every new leader. The lease makes it rare
that two leaders act at once; the token, checked where the write happens, makes it harmless.

Commands:
`

const exitHelp = `Exit codes:
  0  done
  1  another error
  2  the command line or a setting is wrong
  3  another candidate holds the lease, the token is not the leader's or must not write, or a successor is not ready
  4  the lease is lost: stop acting as leader
  5  the server, its store or the peer of a --via could not be reached
  6  the wait for the lease timed out
  7  'regent apply --dry-run' found differences
  8  'regent apply' found an election that another caller has changed meanwhile
  9  an order for many elections was carried out for some, and failed for others
'regent run' returns the exit code of its command; see 'regent run --help' for that, and for 120 to 127.

Data is written to standard output, everything else to standard error. There is no colour. With --output json an error is
one line of JSON on standard error, a problem document of the API: code, detail and, where they apply, leaderId,
fencingToken, expiresInMs, retryAfterMs.
`

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:               "regent",
		Short:             "Leadership as a service",
		Version:           currentBuild().Version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return c.resolveFlags(cmd) },
	}
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SetFlagErrorFunc(unknownFlag)
	root.DisableSuggestions = true // see unknownCommand
	c.groups = c.makeGroups()
	for _, g := range c.groups {
		c.add(root, g.commands...)
	}
	help, _, _ := root.Find([]string{"help"}) // the help command, which was just added,
	root.SetHelpCommand(help)                 // replaces cobra's own
	ofCommand := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if cmd != root {
			ofCommand(cmd, args)
			return
		}
		fmt.Fprint(c.out, c.rootHelp())
	})
	return root
}

// add puts commands below parent. An error before a command runs is a usage error.
func (c *cli) add(parent *cobra.Command, commands ...*cobra.Command) {
	for _, cmd := range commands {
		cmd.DisableFlagsInUseLine = true
		run := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			c.started = true
			return run(cmd, args)
		}
		parent.AddCommand(cmd)
	}
}

// electionAnd expects two arguments: the name of an election, and a thing, which validate checks.
func electionAnd[T ~string](thing string, validate func(T) error) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 2 {
			return fmt.Errorf("%s takes two arguments, the election's name and the %s, but got %d", cmd.Name(), thing, len(args))
		}
		return errors.Join(oneElection(cmd, args[:1]), validate(T(args[1])))
	}
}

func oneElection(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s takes one argument, the election's name, but got %d", cmd.Name(), len(args))
	}
	return leadership.Election(args[0]).Validate()
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, but got %q", cmd.Name(), args[0])
	}
	return nil
}
