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

type candidateFlags struct {
	id  leadership.CandidateID
	key keyFlags
}

// add adds the flags of a command about a candidate that has asked for the lease before.
func (f *candidateFlags) add(c *cli, cmd *cobra.Command) {
	f.key.add(cmd)
	c.addCandidate(cmd, &f.id, "the candidate's id", c.sameCandidate)
}

// addCandidate adds a flag whose default is the candidate of this host.
func (c *cli) addCandidate(cmd *cobra.Command, id *leadership.CandidateID, help string, standard func(context.Context) (string, error)) {
	cmd.Flags().Var(&value[leadership.CandidateID]{id, "", "ID", parseCandidate}, "candidate", help+" (default: this host's name)")
	c.source(cmd, source{flag: "candidate", variable: "REGENT_CANDIDATE", standard: standard})
}

// newCandidate is the id of this host's candidate. It says so if that is another one each time.
func (c *cli) newCandidate(ctx context.Context) (string, error) {
	id, stable := client.DefaultCandidateID(ctx)
	if !stable {
		fmt.Fprintf(c.err, "regent: this host has no name of its own, so the candidate is %s now, and another one next time; orders against it do not hold then: give --candidate, or set REGENT_CANDIDATE\n", id)
	}
	return string(id), nil
}

// sameCandidate is newCandidate for what an earlier call has begun.
func (c *cli) sameCandidate(ctx context.Context) (string, error) {
	id, stable := client.DefaultCandidateID(ctx)
	if !stable {
		return "", fmt.Errorf("%w; this host has no name of its own that could stand for it", missing(source{flag: "candidate", variable: "REGENT_CANDIDATE"}))
	}
	return string(id), nil
}

func (c *cli) acquireCommand() *cobra.Command {
	var who candidateFlags
	var worth candidacyFlags
	var lease, wait time.Duration
	var metadata []byte
	var note string
	var via leadership.Via
	var inherit, state bool
	cmd := &cobra.Command{
		Use:   "acquire ELECTION [--candidate ID]",
		Short: "Ask to lead an election",
		Long: `Ask to lead an election. If it is vacant, the candidate leads until its lease ends, and keeps the lease by renewing it. If
the answer is lost, ask again with the same candidate and key to get the same lease. Without a key, the server chooses one
and it is printed only this once. If another candidate leads, the exit code is 3.

The candidate is this host, unless --candidate names another. Programs of one host are then incarnations of one candidate:
one leads, and the others wait. Name them if orders, such as a ban, or ranks shall tell them apart.

With --wait the candidate waits in line while another one leads, and retries while the server cannot be reached. If it does
not lead when the time is over, the exit code is 6. An interrupt makes it leave the line.

Who leads next is the election's policy: the one that has waited longest or, where that says so, the one with the greatest
--priority, the most --capabilities, or the smallest --load. There candidates bid for a moment, 300ms unless the policy says
otherwise, and without --wait the command asks again when its turn comes, for up to --timeout. A candidate without a
capability that the policy requires is refused at once, with exit code 1.

With --via the lease stands on another one that the same candidate holds, and ends with that at the latest: where the policy
"leadersOf" names elections, only their leaders can lead this one. With --inherit the answer has the checkpoint that the
last leader has left ('regent checkpoint'), and no earlier leader can put another one any more.`,
		Example: `  regent acquire reports --candidate agent-1 --lease 30s --metadata '{"address":"10.0.0.7:8080"}'
  regent acquire reports --candidate agent-2 --wait 5m
  regent acquire reports --candidate agent-3 --wait forever --priority 10 --capabilities gpu,eu
  regent acquire orders --candidate agent-4 --via orders.eu:7 --inherit`,
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := c.key(who.key)
			if err != nil {
				return err
			}
			return c.acquire(cmd.Context(), leadership.AcquireRequest{
				Election:      leadership.Election(args[0]),
				CandidateID:   who.id,
				Key:           key,
				LeaseDuration: lease,
				Metadata:      metadata,
				Note:          note,
				Candidacy:     worth.of(who.id),
				Via:           via,
				Inherit:       inherit,
				Statement:     state,
			}, wait)
		},
	}
	who.key.add(cmd)
	c.addCandidate(cmd, &who.id, "the candidate's id", c.newCandidate)
	worth.add(c, cmd)
	cmd.Flags().Var(&value[time.Duration]{&lease, "", "DURATION", within(leadership.LeaseBounds)}, "lease", "how long the lease lasts, "+leadership.LeaseBounds.String()+" (default: as the election is configured)")
	cmd.Flags().Var(&value[[]byte]{&metadata, "", "JSON", parseMetadata}, "metadata", "a JSON object that describes the leader, such as its address")
	cmd.Flags().StringVar(&note, "note", "", "what the candidate will do with the lease, in at most 256 bytes; readers see it while the lease lasts")
	addVia(cmd, &via)
	cmd.Flags().BoolVar(&inherit, "inherit", false, "get with the lease what earlier leaders have left: the checkpoint, effects in doubt and open proposals")
	addStatement(cmd, &state)
	cmd.Flags().Var(&value[time.Duration]{&wait, "0s", "DURATION", parseWait}, "wait", "how long to wait in line while another candidate leads, up to 24h, or forever; --timeout is added")
	c.complete(cmd, "wait", "30s", "5m", "forever")
	return c.remote(cmd)
}

func addVia(cmd *cobra.Command, via *leadership.Via) {
	cmd.Flags().Var(&value[leadership.Via]{via, "", "[PEER/]ELECTION:TOKEN", parseVia}, "via", "the lease that this one stands on: its election and fencing token, and the peer if it is at another service")
}

// acquire asks once or, with a wait, until the candidate leads or the wait is over.
func (c *cli) acquire(ctx context.Context, r leadership.AcquireRequest, wait time.Duration) error {
	if wait > 0 {
		return c.acquireWithin(ctx, r, wait)
	}
	return c.ask(ctx, func(ctx context.Context, server *client.Client) error {
		grant, err := acquireInTurn(ctx, server, r)
		if err != nil {
			return err
		}
		return c.printGrant(grant, r.Key == nil)
	})
}

// acquireInTurn asks and, if that was a bid, asks again whenever the turn of the candidate comes
// before ctx ends.
func acquireInTurn(ctx context.Context, server *client.Client, r leadership.AcquireRequest) (leadership.Grant, error) {
	last, limited := ctx.Deadline()
	last = last.Add(-time.Until(last) / 10) // an answer takes time, and a call without one has an unknown outcome
	for {
		grant, err := server.Acquire(ctx, r)
		var refusal *leadership.Error
		if !errors.As(err, &refusal) || refusal.Reason != leadership.ReasonBallot && refusal.Reason != leadership.ReasonOutranked {
			return grant, err
		}
		if limited && time.Until(last) < refusal.RetryAfter {
			return grant, err
		}
		sleep(ctx, max(refusal.RetryAfter, time.Millisecond))
	}
}

func (c *cli) renewCommand() *cobra.Command {
	var ticket string
	var state bool
	cmd := c.leaseCommand(&cobra.Command{
		Use:   "renew ELECTION [--candidate ID] --token N",
		Short: "Renew a lease",
		Long: `Renew a lease: it lasts its full duration again, from now. If it is lost, the exit code is 4: stop acting as leader at
once. After any other failure the lease may still be valid: retry until your own deadline.

With --output json the answers of acquire and renew may have a "ticket". Given to the next renewal it saves the store a
read; no renewal needs it.`,
	}, func(server *client.Client, ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
		r.Statement, r.Ticket = state, leadership.Ticket(ticket)
		return server.Renew(ctx, r)
	})
	addStatement(cmd, &state)
	cmd.Flags().StringVar(&ticket, "ticket", "", "the ticket of the last answer, if it had one")
	return cmd
}

func (c *cli) releaseCommand() *cobra.Command {
	var outcome leadership.Outcome
	var note string
	cmd := c.leaseCommand(&cobra.Command{
		Use:   "release ELECTION [--candidate ID] --token N [--outcome OUTCOME [--note TEXT]]",
		Short: "Release a lease",
		Long: `Release a lease, so that the next leader need not wait for its end. Releasing twice is the same as once. With --outcome
the history says how the work has ended: done, failed or stopped. A policy with a "series" counts failed terms.`,
	}, func(server *client.Client, ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
		return server.Do(ctx, leadership.Release{LeaseRequest: r, Outcome: outcome, Note: note})
	})
	cmd.Flags().StringVar((*string)(&outcome), "outcome", "", "how the work has ended: done, failed or stopped")
	cmd.Flags().StringVar(&note, "note", "", "with --outcome: a line about it, for people")
	return cmd
}

// leaseCommand completes a command that acts on a lease the caller holds.
func (c *cli) leaseCommand(cmd *cobra.Command, call func(*client.Client, context.Context, leadership.LeaseRequest) (leadership.Lease, error)) *cobra.Command {
	var who candidateFlags
	var token leadership.Token
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		key, err := c.requireKey(who.key)
		if err != nil {
			return err
		}
		r := leadership.LeaseRequest{Election: leadership.Election(args[0]), CandidateID: who.id, Key: key, Token: token}
		return answer(cmd.Context(), c, r, call, c.printLease)
	}
	who.add(c, cmd)
	c.addToken(cmd, &token)
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
