package main

import (
	"context"
	_ "embed"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"regent/httpapi/mcp"
	"regent/leadership"
	"regent/leadership/client"
)

const mcpHelp = `Serve tools for a language model, over standard input and output, in the Model Context Protocol: lead, leading, report,
stop_leading, request_approval, who_leads, list, members, why_not, history, watch, checkpoint_put, checkpoint_get,
journal_append, journal_read, effect_begin, effect_finish, propose, proposals, decide, check_token and, for operators,
assign, evict, pause, resume, approve. A program that runs a model starts this command; its settings are such as

  {"mcpServers": {"regent": {"command": "regent", "args": ["mcp", "--server", "https://regent.example.com"]}}}

The process holds and renews the leases, so that the model never sees a key. It releases them when standard input ends, or
at SIGTERM, SIGINT or SIGHUP; if it is killed, they end by themselves. A line that is no message of the protocol ends the
session, and so does one of more than 1 MiB: the leases are released, and the process exits with an error. Nothing is sent
to the server before the first call of a tool.

A model is slow: what it was told may be over when it acts on it. Have the fencing token checked where the model's writes
arrive, and let it call leading right before each step that matters. 'regent skill' prints instructions for it.

'regent serve --mcp' offers the same tools over HTTP.`

func (c *cli) mcpCommand() *cobra.Command {
	var candidate leadership.CandidateID
	var actor string
	cmd := &cobra.Command{
		Use:     "mcp [--server URL] [--candidate ID]",
		Short:   "Serve tools for a language model over standard input and output",
		Long:    mcpHelp,
		Example: "  regent mcp --server https://regent.example.com --id-token-file /run/secrets/token",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.serveModel(cmd.Context(), candidate, actor) },
	}
	c.addCandidate(cmd, &candidate, "the candidate's id, unless a call of lead says another one", c.newCandidate)
	cmd.Flags().Var(&value[string]{&actor, "", "NAME", parseText}, "actor", "the actor of orders, if the server does not verify its callers (default: the user of this machine)")
	c.addRemote(cmd)
	c.from(cmd, "actor")
	return cmd
}

// serveModel serves one session, and then releases its leases.
func (c *cli) serveModel(ctx context.Context, candidate leadership.CandidateID, actor string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	out := newAsyncWriter(c.err) // a program that does not read it must not stop the renewals
	defer out.drain()
	log := newLogTo(out, isTerminal(c.err), "")
	calls, err := c.connectWith(client.Config{HTTP: &http.Client{Timeout: c.timeout}, Log: log})
	if err != nil {
		return err
	}
	s := mcp.NewSession(mcp.SessionConfig{
		Calls: calls,
		Connect: func(config client.Config) (*client.Client, error) {
			config.HTTP = &http.Client{Timeout: c.timeout + leadership.MaxWait}
			return c.connectWith(config)
		},
		Candidate: candidate, Actor: c.actor(actor), Version: currentBuild().Version, Log: log,
	})
	return s.Run(ctx, io.NopCloser(c.in), unclosed{c.out})
}

// unclosed is a writer whose Close does nothing.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

//go:embed SKILL.md
var skill string

func (c *cli) skillCommand() *cobra.Command {
	return c.printing("skill", "Print instructions for a language model that works with Regent", `Print a SKILL.md: what Regent is for and what not, the tools and the commands, and what to check before and after. Put it
where a program that runs a model looks for skills, such as

  mkdir -p .claude/skills/regent && regent skill > .claude/skills/regent/SKILL.md`, skill)
}
