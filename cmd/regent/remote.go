package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/client"
)

const (
	defaultServer = "http://127.0.0.1:8080"
	// longer than a server's store timeout, so that its answer arrives
	defaultTimeout = 15 * time.Second
)

// addRemote adds the flags of a command that calls a server.
func (c *cli) addRemote(cmd *cobra.Command) {
	c.server, c.timeout = defaultServer, defaultTimeout
	cmd.Flags().Var(&value[string]{&c.server, defaultServer, "URL", parseText}, "server", "the Regent server")
	cmd.Flags().Var(&value[time.Duration]{&c.timeout, defaultTimeout.String(), "DURATION", between(time.Millisecond, time.Hour)}, "timeout", "how long to wait for the server")
	cmd.Flags().BoolVar(&c.insecure, "insecure", false, "allow http:// to another machine: keys and credentials can be read on the way")
	c.from(cmd, "server", "insecure", "timeout")
	c.addBearer(cmd)
}

type format string

const (
	table    format = "table"
	document format = "json"
)

func (c *cli) addOutput(cmd *cobra.Command) {
	c.output = table
	addChoice(c, cmd, &c.output, table, "output", "FORMAT", "table, or json: one document of the API per line, and errors as problem documents on standard error", table, document)
	c.from(cmd, "output")
}

// remote completes a command that calls a server and prints data. Unless cmd says otherwise, its
// one argument is an election.
func (c *cli) remote(cmd *cobra.Command) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = oneElection
		cmd.ValidArgsFunction = c.completeElection
	}
	c.addRemote(cmd)
	c.addOutput(cmd)
	return cmd
}

// reading returns a command that reads an election and prints the answer.
func reading[T any](
	c *cli, name, short, long string, call func(*client.Client, context.Context, leadership.Election) (T, error), show func(T) error,
) *cobra.Command {
	return c.remote(&cobra.Command{
		Use:   name + " ELECTION",
		Short: short,
		Long:  long,
		RunE: func(cmd *cobra.Command, args []string) error {
			return answer(cmd.Context(), c, leadership.Election(args[0]), call, show)
		},
	})
}

// connect returns a client of the server. The address is parsed here and not as a flag, because the
// flag library prints values that it cannot parse, and the address may contain a password. The
// client has no timeout of its own, which could be shorter than --timeout. A token file that does
// not exist is a usage error; commands that keep a lease wait for it instead.
func (c *cli) connect() (*client.Client, error) {
	if c.bearer.file != "" {
		if _, err := os.Stat(c.bearer.file); err != nil { // a pipe can be read only once
			return nil, usagef("--id-token-file: %w", err)
		}
	}
	return c.connectWith(client.Config{HTTP: &http.Client{}})
}

// connectWith returns a client of the server, with the server and the identity from the flags.
func (c *cli) connectWith(config client.Config) (*client.Client, error) {
	config.Server, config.Insecure, config.Credential = c.server, c.insecure, c.bearer.credential()
	server, err := client.New(config)
	switch {
	case errors.Is(err, client.ErrPlainHTTP):
		return nil, usagef("--server or REGENT_SERVER: %w; use https:// (SSL_CERT_FILE names the certificates of an authority of your own), or give --insecure if the connection is encrypted otherwise", client.ErrPlainHTTP)
	case err != nil:
		return nil, usagef("--server or REGENT_SERVER: %w", errors.Unwrap(err))
	}
	return server, nil
}

// ask calls the server, within --timeout.
func (c *cli) ask(ctx context.Context, call func(context.Context, *client.Client) error) error {
	server, err := c.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return call(ctx, server)
}

// do sends a command to the server.
func do[C leadership.Command](server *client.Client, ctx context.Context, command C) (leadership.Lease, error) {
	return server.Do(ctx, command)
}

// answer makes a call with a request, and prints the answer.
func answer[R, T any](ctx context.Context, c *cli, r R, call func(*client.Client, context.Context, R) (T, error), show func(T) error) error {
	return c.ask(ctx, func(ctx context.Context, server *client.Client) error {
		v, err := call(server, ctx, r)
		if err != nil {
			return err
		}
		return show(v)
	})
}
