package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/client"
)

// addCandidate adds a flag whose default is the candidate of this host.
func (c *cli) addCandidate(cmd *cobra.Command, id *leadership.CandidateID, help string, standard func(context.Context) (string, error)) {
	cmd.Flags().Var(&value[leadership.CandidateID]{id, "", "ID", parseCandidate}, "candidate", help+" (default: this host's name)")
	c.source(cmd, source{flag: "candidate", variable: "REGENT_CANDIDATE", standard: standard})
}

// newCandidate returns the id of this host's candidate. It warns if the id changes with each start.
func (c *cli) newCandidate(ctx context.Context) (string, error) {
	id, stable := client.DefaultCandidateID(ctx)
	if !stable {
		fmt.Fprintf(c.err, "regent: this host has no stable name: the candidate is %s, and has another id after each start, so orders against it do not last; give --candidate, or set REGENT_CANDIDATE\n", id)
	}
	return string(id), nil
}

// sameCandidate is newCandidate for a command that continues an earlier one: an id that changes
// with each start is an error.
func (c *cli) sameCandidate(ctx context.Context) (string, error) {
	id, stable := client.DefaultCandidateID(ctx)
	if !stable {
		return "", fmt.Errorf("%w; this host has no stable name to use instead", missing(source{flag: "candidate", variable: "REGENT_CANDIDATE"}))
	}
	return string(id), nil
}

func (c *cli) acquireCommand() *cobra.Command {
	var key keyFlags
	var worth candidacyFlags
	var r leadership.AcquireRequest
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "acquire ELECTION [--candidate ID]",
		Short: "Ask to lead an election",
		Long: `Ask to lead an election. If it is vacant, the candidate leads until its lease ends, and keeps the lease by renewing it. If
the answer is lost, ask again with the same candidate and key to get the same lease. Without a key, the server chooses one
and it is printed only this once. If another candidate leads, the exit code is 3.

The candidate is this host, unless --candidate names another. Programs of one host are then incarnations of one candidate:
one leads, and the others wait. Name them if orders, such as a ban, or ranks must tell them apart.

With --wait the candidate waits in line while another one leads, and retries while the server cannot be reached. If it does
not lead when the time is over, the exit code is 6. An interrupt makes it leave the line.

The election's policy decides which candidate leads next: by default the one that has waited longest; otherwise the one
with the greatest --priority, the most --capabilities, or the smallest --load. With such a policy candidates bid for a
moment, 300ms unless the policy says otherwise, and without --wait the command asks again when its turn comes, for up to
--timeout. A candidate without a capability that the policy requires is refused at once, with exit code 1.

With --via the lease stands on another lease of the same candidate, and ends no later than that one. Where the policy has
"leadersOf", only leaders of those elections can lead this one. With --inherit the answer has the last leader's checkpoint
('regent checkpoint'), which no earlier leader can replace any more.`,
		Example: `  regent acquire reports --candidate agent-1 --lease 30s --metadata '{"address":"10.0.0.7:8080"}'
  regent acquire reports --candidate agent-2 --wait 5m
  regent acquire reports --candidate agent-3 --wait forever --priority 10 --capabilities gpu,eu
  regent acquire orders --candidate agent-4 --via orders.eu:7 --inherit`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if r.Key, err = c.key(key); err != nil {
				return err
			}
			r.Election, r.Candidacy = leadership.Election(args[0]), worth.of(r.CandidateID)
			return c.acquire(cmd.Context(), r, wait)
		},
	}
	key.add(cmd)
	c.addCandidate(cmd, &r.CandidateID, "the candidate's id", c.newCandidate)
	worth.add(c, cmd)
	cmd.Flags().Var(&value[time.Duration]{&r.LeaseDuration, "", "DURATION", within(leadership.LeaseBounds)}, "lease", "how long the lease lasts, "+leadership.LeaseBounds.String()+" (default: as the election is configured)")
	cmd.Flags().Var(&value[[]byte]{&r.Metadata, "", "JSON", parseMetadata}, "metadata", "a JSON object that describes the leader, such as its address")
	cmd.Flags().StringVar(&r.Note, "note", "", "what the candidate will do with the lease, in at most 256 bytes; readers see it while the lease lasts")
	cmd.Flags().Var(&value[leadership.Via]{&r.Via, "", "[PEER/]ELECTION:TOKEN", parseVia}, "via", "the lease that this one stands on: its election and fencing token, and the peer if it is at another service")
	cmd.Flags().BoolVar(&r.Inherit, "inherit", false, "get with the lease what earlier leaders have left: the checkpoint, effects in doubt and open proposals")
	addStatement(cmd, &r.Statement)
	cmd.Flags().Var(&value[time.Duration]{&wait, "0s", "DURATION", parseWait}, "wait", "how long to wait in line while another candidate leads, up to 24h, or forever; --timeout is added")
	c.complete(cmd, "wait", "30s", "5m", "forever")
	return c.remote(cmd)
}

// acquire asks once or, with a wait, until the candidate leads or the wait is over.
func (c *cli) acquire(ctx context.Context, r leadership.AcquireRequest, wait time.Duration) error {
	if wait > 0 {
		return c.acquireWithin(ctx, r, wait)
	}
	return answer(ctx, c, r, acquireInTurn, func(g leadership.Grant) error { return c.printGrant(g, r.Key == nil) })
}

// acquireInTurn asks for the lease. If the answer is that bids are collected, it asks again each
// time the candidate's turn comes, until the deadline of ctx, which must have one.
func acquireInTurn(server *client.Client, ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	last, _ := ctx.Deadline()
	last = last.Add(-time.Until(last) / 10) // an answer takes time, and a call without one has an unknown outcome
	for {
		grant, err := server.Acquire(ctx, r)
		refusal, refused := errors.AsType[*leadership.Error](err)
		bid := refused && (refusal.Reason == leadership.ReasonBallot || refusal.Reason == leadership.ReasonOutranked)
		if !bid || time.Until(last) < refusal.RetryAfter {
			return grant, err
		}
		sleep(ctx, max(refusal.RetryAfter, time.Millisecond))
	}
}

func (c *cli) renewCommand() *cobra.Command {
	var r leadership.LeaseRequest
	cmd := leaseCommand(c, &cobra.Command{
		Use:   "renew ELECTION [--candidate ID] --token N",
		Short: "Renew a lease",
		Long: `Renew a lease: it lasts its full duration again, from now. If it is lost, the exit code is 4: stop acting as leader at
once. After any other failure the lease may still be valid: retry until your own deadline.

With --output json the answers of acquire and renew may have a "ticket". Given to the next renewal it saves the store a
read; no renewal needs it.`,
	}, &r, &r, (*client.Client).Renew)
	addStatement(cmd, &r.Statement)
	cmd.Flags().StringVar((*string)(&r.Ticket), "ticket", "", "the ticket of the last answer, if it had one")
	return cmd
}

func (c *cli) releaseCommand() *cobra.Command {
	var r leadership.Release
	cmd := leaseCommand(c, &cobra.Command{
		Use:   "release ELECTION [--candidate ID] --token N [--outcome OUTCOME [--note TEXT]]",
		Short: "Release a lease",
		Long: `Release a lease, so that the next leader need not wait for its end. Releasing twice is the same as once. With --outcome
the history says how the work has ended: done, failed or stopped. A policy with a "series" counts failed terms.`,
	}, &r, &r.LeaseRequest, do)
	cmd.Flags().StringVar((*string)(&r.Outcome), "outcome", "", "how the work has ended: done, failed or stopped")
	cmd.Flags().StringVar(&r.Note, "note", "", "with --outcome: a line about it, for people")
	return cmd
}

// leaseCommand completes a command about a lease that the caller holds. The command calls with r,
// of which lease is a part.
func leaseCommand[R any](
	c *cli, cmd *cobra.Command, r *R, lease *leadership.LeaseRequest, call func(*client.Client, context.Context, R) (leadership.Lease, error),
) *cobra.Command {
	cmd = candidateCommand(c, cmd, r, lease, call)
	c.addToken(cmd, &lease.Token)
	return cmd
}

// candidateCommand is leaseCommand for a candidate that has no token yet.
func candidateCommand[R any](
	c *cli, cmd *cobra.Command, r *R, lease *leadership.LeaseRequest, call func(*client.Client, context.Context, R) (leadership.Lease, error),
) *cobra.Command {
	var key keyFlags
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		lease.Election = leadership.Election(args[0])
		if lease.Key, err = c.requireKey(key); err != nil {
			return err
		}
		return answer(cmd.Context(), c, *r, call, c.printLease)
	}
	key.addFor(c, cmd, &lease.CandidateID)
	return c.remote(cmd)
}

func (c *cli) addToken(cmd *cobra.Command, token *leadership.Token) {
	cmd.Flags().Var(&value[leadership.Token]{token, "", "N", parseToken}, "token", "the fencing token that came with the lease")
	c.require(cmd, "token", "REGENT_TOKEN")
}

func (c *cli) checkCommand() *cobra.Command {
	var token leadership.Token
	var write bool
	cmd := &cobra.Command{
		Use:   "check ELECTION --token N [--write]",
		Short: "Check whether a fencing token is the current leader's",
		Long: `Check whether a fencing token is the current leader's. If it is not, the exit code is 3: do not act on it. With --write it is 3,
too, while the election is read-only because too few members of its electorate are present, and until its leader has said
that it serves, where the policy asks for that.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r := leadership.TokenCheck{Election: leadership.Election(args[0]), Token: token, Write: write}
			return answer(cmd.Context(), c, r, (*client.Client).CheckToken, c.printLease)
		},
	}
	c.addToken(cmd, &token)
	cmd.Flags().BoolVar(&write, "write", false, "check that the holder may write, too")
	return c.remote(cmd)
}
