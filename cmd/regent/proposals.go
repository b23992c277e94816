package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/client"
)

func (c *cli) proposeCommand() *cobra.Command {
	var r leadership.ProposeRequest
	cmd := &cobra.Command{
		Use:   "propose ELECTION ID --kind KIND [--data JSON] [--ttl DURATION] [--wait DURATION] [--candidate ID]",
		Short: "Ask the leader of an election for a decision",
		Long: `Ask the leader of an election for a decision, now or within --ttl: a successor gets the open ones. ID names the proposal;
the same command again is about the same proposal, so take a new id for each. The proposer is this host, unless
--candidate names another; it needs no lease. This is no message bus: at most 64 proposals of an election are open, 8 of
them of one proposer.

With --wait it waits for the decision, and keeps trying while the server cannot be reached. The exit code is 0 if the
proposal was accepted, 3 if it was rejected, and 6 if it is still open when the time is over; without --wait, 0 if it is
open.`,
		Example: `  regent propose reports scale-3 --kind scale --data '{"to":3}' --wait 5m
  regent propose reports reindex-2026-11-29 --kind reindex --ttl 1h --candidate worker-17`,
		Args:              electionAnd("proposal's id", leadership.ProposalID.Validate),
		ValidArgsFunction: c.completeElection,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Election, r.ID = leadership.Election(args[0]), leadership.ProposalID(args[1])
			if r.TTL == 0 {
				r.TTL = max(leadership.DefaultProposalTTL, r.Wait)
			}
			return c.propose(cmd.Context(), r)
		},
	}
	c.addCandidate(cmd, &r.CandidateID, "the proposer's id", c.newCandidate)
	cmd.Flags().StringVar(&r.Kind, "kind", "", "the kind of proposal: one line of at most 64 bytes")
	cmd.Flags().Var(&value[json.RawMessage]{&r.Data, "", "JSON", parseJSON}, "data", "what the leader has to know: any JSON of at most 2 KiB")
	cmd.Flags().Var(&value[time.Duration]{&r.TTL, "", "DURATION", between(leadership.MinProposalTTL, leadership.MaxProposalTTL)}, "ttl", "how long the proposal is open, from 1s to 24h (default: 10m, or as long as --wait)")
	cmd.Flags().Var(&value[time.Duration]{&r.Wait, "0s", "DURATION", between(0, leadership.MaxProposalTTL)}, "wait", "how long to wait for the decision; --timeout is added")
	c.require(cmd, "kind", "")
	c.complete(cmd, "wait", "30s", "5m")
	return c.remote(cmd)
}

func parseJSON(text string) (json.RawMessage, error) {
	if !json.Valid([]byte(text)) {
		return nil, errors.New("must be JSON; a text stands between quotation marks")
	}
	return json.RawMessage(text), nil
}

func (c *cli) propose(ctx context.Context, r leadership.ProposeRequest) error {
	server, err := c.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout+r.Wait)
	defer cancel()
	p, err := server.Propose(ctx, r)
	if err == nil {
		err = c.printProposal(p)
	}
	switch {
	case err != nil:
		return err
	case p.Decision == nil && r.Wait > 0:
		return timedOut{fmt.Errorf("the wait of %v is over, and proposal %q of election %q is open; the same command waits again", r.Wait, r.ID, r.Election)}
	case p.Decision != nil && p.Decision.Verdict == leadership.ProposalRejected:
		return exitStatus{code: exitHeld}
	}
	return nil
}

func (c *cli) decideCommand() *cobra.Command {
	var key keyFlags
	var r leadership.DecideRequest
	cmd := &cobra.Command{
		Use:   "decide ELECTION ID --verdict accepted|rejected [--note TEXT] [--candidate ID] --token N",
		Short: "Decide a proposal, as the leader of its election",
		Long: `Decide a proposal, as the leader of its election, once and for good; 'regent proposals' shows those that are open. The
same command again is safe; another verdict or note is refused with exit code 2. The exit code is 3 if a later leader has
decided one since, and 4 if the lease is over: this leader must stop.`,
		Example:           `  regent decide reports scale-3 --verdict accepted --note "from noon on" --candidate agent-1 --token 7`,
		Args:              electionAnd("proposal's id", leadership.ProposalID.Validate),
		ValidArgsFunction: c.completeElection,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			r.Election, r.ID = leadership.Election(args[0]), leadership.ProposalID(args[1])
			if r.Key, err = c.requireKey(key); err != nil {
				return err
			}
			return answer(cmd.Context(), c, r, (*client.Client).Decide, c.printProposal)
		},
	}
	key.addFor(c, cmd, &r.CandidateID)
	c.addToken(cmd, &r.Token)
	addChoice(c, cmd, &r.Verdict, "", "verdict", "VERDICT", "accepted or rejected", leadership.ProposalAccepted, leadership.ProposalRejected)
	cmd.Flags().StringVar(&r.Note, "note", "", "why, for people: one line of at most 256 bytes")
	c.require(cmd, "verdict", "")
	return c.remote(cmd)
}

func (c *cli) printProposal(p leadership.Proposal) error {
	f := facts{{"election", string(p.Election)}, {"proposal", string(p.ID)}, {"proposer", string(p.CandidateID)}, {"kind", printable(p.Kind)}}
	f.add("data", printable(string(p.Data)))
	f = append(f, []string{"proposed", formatTime(p.At)}, []string{"kept until", formatTime(p.Until)}, []string{"state", proposalState(p)})
	if d := p.Decision; d != nil {
		f = append(f, []string{"leader", string(d.LeaderID)}, []string{"fencing token", fmt.Sprint(d.Token)}, []string{"decided", formatTime(d.At)})
		f.add("note", printable(d.Note))
	}
	return c.show(p, f)
}

func proposalState(p leadership.Proposal) string {
	if p.Decision == nil {
		return "open"
	}
	return string(p.Decision.Verdict)
}

func (c *cli) proposalsCommand() *cobra.Command {
	return reading(c, "proposals", "Show what the leader of an election was asked, and has decided", `Show the proposals of an election: those that are open, in the order in which they were made, and the last 64 decisions. BY is
the leader that has decided, and TOKEN its fencing token. Nothing is kept after its ttl.`, (*client.Client).Proposals, func(all leadership.Proposals) error {
		rows := [][]string{{"PROPOSAL", "PROPOSER", "KIND", "PROPOSED", "STATE", "BY", "TOKEN", "NOTE", "DATA"}}
		for _, p := range slices.Concat(all.Open, all.Decided) {
			d := leadership.Decision{LeaderID: "-", Note: "-"}
			if p.Decision != nil {
				d = *p.Decision
			}
			rows = append(rows, []string{string(p.ID), string(p.CandidateID), printable(p.Kind), formatTime(p.At), proposalState(p), string(d.LeaderID), numberOrDash(int64(d.Token)), printable(d.Note), printable(string(p.Data))})
		}
		return c.show(all, rows)
	})
}
