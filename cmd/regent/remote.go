package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/client"
)

const (
	defaultServer  = "http://127.0.0.1:8080"
	defaultTimeout = 15 * time.Second // longer than a server asks its store, so that its answer is heard
)

// addRemote gives a command what it needs to speak to a server.
func (c *cli) addRemote(cmd *cobra.Command) {
	c.server, c.timeout = defaultServer, defaultTimeout
	cmd.Flags().Var(&value[string]{&c.server, defaultServer, "URL", parseText}, "server", "the Regent server")
	cmd.Flags().Var(&value[time.Duration]{&c.timeout, defaultTimeout.String(), "DURATION", parseTimeout}, "timeout", "how long to wait for the server")
	c.from(cmd, "server", "REGENT_SERVER")
	c.from(cmd, "timeout", "REGENT_TIMEOUT")
	c.addBearer(cmd)
}

// addOutput gives a command a choice of how its data is printed.
func (c *cli) addOutput(cmd *cobra.Command) {
	c.output = table
	cmd.Flags().Var(&value[format]{&c.output, string(table), "FORMAT", parseFormat}, "output", "table, or json: a document of the API on each line, and an error as its problem document on standard error")
	c.from(cmd, "output", "REGENT_OUTPUT")
	c.complete(cmd, "output", string(table), string(document))
}

// remote makes a command out of one that has the flags of its own: it speaks to a server, about one election, and prints data.
func (c *cli) remote(cmd *cobra.Command) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = oneElection
		cmd.ValidArgsFunction = c.completeElection
	}
	c.addRemote(cmd)
	c.addOutput(cmd)
	return cmd
}

// connect returns a client of the server. The server's address is parsed here and not with the flags, because the flag library repeats what
// it cannot parse, and there may be a password in it. The client has no timeout of its own, which would cut a longer one short.
func (c *cli) connect() (*client.Client, error) {
	server, err := client.New(client.Config{Server: c.server, HTTP: &http.Client{}, Token: c.bearer.token()})
	if err != nil {
		return nil, usagef("--server or REGENT_SERVER: %w", errors.Unwrap(err))
	}
	return server, nil
}

// ask calls the server, within the timeout.
func (c *cli) ask(ctx context.Context, call func(context.Context, *client.Client) error) error {
	server, err := c.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return call(ctx, server)
}

// askLease calls the server for a lease and prints it.
func (c *cli) askLease(ctx context.Context, call func(context.Context, *client.Client) (leadership.Lease, error)) error {
	return c.ask(ctx, func(ctx context.Context, server *client.Client) error {
		lease, err := call(ctx, server)
		if err != nil {
			return err
		}
		return c.printLease(lease)
	})
}
