package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/client"
)

const onceHelp = `Run a command once, on whichever machine: regent waits for leadership, notes the effect, runs the command as 'regent run'
does, and notes that it is done once the command has ended with exit code 0. If the effect is done already, now or by the time
that regent leads, the command is not run, and the exit code is 0. The effect is named by 1 to 128 of A-Z, a-z, 0-9 and
"._@:-", such as a date; the command has it in REGENT_EFFECT, and a service that takes an idempotency key should get it.
An election with policy.seats is refused, once regent leads one: each of its seats has effects of its own.

An effect is in doubt if a command was begun, and was not seen to end with exit code 0: it has failed or was asked to
stop, or its machine went down. It may have had its effect, or a part of it; Regent cannot tell. --if-in-doubt says what
to do then:
  fail   do not run the command; the exit code is 123. Find out, and run regent again with one of these:
  run    run the command again, as for one that may be repeated. To note that all is done: --if-in-doubt run -- true
  skip   do not run the command; the exit code is 0, and the effect stays in doubt

'regent effects ELECTION' shows the effects of an election: the last 1,000, fewer if they have more than 512 KiB. An
effect that is dropped would be new again.

Exit codes: those of 'regent run', and
  123  the effect is in doubt, or the command has ended and that could not be noted, or after SIGTERM or SIGINT`

type inDoubtAction string

const (
	inDoubtFail inDoubtAction = "fail"
	inDoubtRun  inDoubtAction = "run"
	inDoubtSkip inDoubtAction = "skip"
)

func (c *cli) onceCommand() *cobra.Command {
	f := runFlags{wait: forever, grace: derivedGrace, onReadOnly: readOnlyContinue, ifInDoubt: inDoubtFail}
	cmd := &cobra.Command{
		Use:   "once ELECTION EFFECT [flags] -- COMMAND...",
		Short: "Run a command once, on whichever machine",
		Long:  onceHelp,
		Example: `  regent once nightly "$(date +%F)" -- ./backup
  regent once invoices 2026-11 --if-in-doubt run -- sh -c './send-invoices --idempotency-key "$REGENT_EFFECT"'`,
		Args:              beforeCommand("once ELECTION EFFECT", electionAnd("effect's id", leadership.EffectID.Validate)),
		ValidArgsFunction: c.completeElection,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.effect = leadership.EffectID(args[1])
			return c.once(cmd.Context(), f, append(args[:1:1], args[2:]...))
		},
	}
	c.addTerm(cmd, &f)
	addChoice(c, cmd, &f.ifInDoubt, inDoubtFail, "if-in-doubt", "ACTION", "what to do if the effect was begun, and is not known to be done: fail, run or skip",
		inDoubtFail, inDoubtRun, inDoubtSkip)
	return cmd
}

// once runs a command once. It does not wait for leadership if the effect is done already.
func (c *cli) once(ctx context.Context, f runFlags, args []string) error {
	return answer(ctx, c, leadership.Election(args[0]), (*client.Client).Effects, func(all leadership.Effects) error {
		if slices.ContainsFunc(all.Effects, func(e leadership.Effect) bool { return e.ID == f.effect && e.State == leadership.EffectDone }) {
			return nil
		}
		return c.run(ctx, f, args)
	})
}

// begin notes the effect, if there is one, and reports whether to run the command. Signals that
// come meanwhile are passed on to the command.
func (r *runner) begin(lease *client.Lease) (run bool, err error) {
	if r.effect == "" {
		return true, nil
	}
	if lease.Election() != r.election { // a seat has its own log of effects
		return false, usagef("election %q has seats, whose leaders would run the command once each; run it once at an election without policy.seats, or at one seat for all, such as %q", r.election, r.election.Seat(1))
	}
	e, err := lease.BeginEffect(lease.Context(), r.effect)
	log := r.log.With("election", r.election, "effect", r.effect, "token", e.Token, "leader", e.LeaderID, "at", formatTime(e.At))
	switch {
	case err != nil:
		return false, err
	case e.State == leadership.EffectDone:
		log.Info("the effect is done already")
		return false, nil
	case e.State == leadership.EffectNew:
		return true, nil
	case r.ifInDoubt == inDoubtFail || e.State != leadership.EffectInDoubt:
		return false, exitStatus{exitInDoubt, fmt.Errorf("effect %q of election %q is in doubt: %s has begun it at %s, under fencing token %d, and it is not known to be done. Find out whether it is, and say so with --if-in-doubt", r.effect, r.election, e.LeaderID, formatTime(e.At), e.Token)}
	}
	log.Warn("the effect is in doubt", "action", string(r.ifInDoubt))
	return r.ifInDoubt == inDoubtRun, nil
}

// finish notes that the effect is done, unless the command was asked to stop. The lease lasts for
// as long as this takes.
func (r *runner) finish(lease *client.Lease, stopped bool) error {
	if stopped {
		return exitStatus{exitInDoubt, fmt.Errorf("the command has ended with exit code 0 after it was asked to stop, so effect %q of election %q stays in doubt", r.effect, r.election)}
	}
	ctx, cancel := context.WithTimeout(lease.Context(), time.Minute)
	defer cancel()
	if err := lease.FinishEffect(ctx, r.effect, nil); err != nil {
		return exitStatus{exitInDoubt, fmt.Errorf("the command has ended with exit code 0, and effect %q of election %q stays in doubt, as that could not be noted: %w", r.effect, r.election, err)}
	}
	return nil
}

func (c *cli) effectsCommand() *cobra.Command {
	return reading(c, "effects", "Show what the leaders of an election have done once", `Show the effects that leaders of an election have noted, with 'regent once' or the SDK; the last changed come last. BY is
the leader that has begun the effect or, if it is done, finished it. STATE is done; begun: the last leader that
has noted or inherited any has begun it, and may lead no more; or inDoubt: an earlier leader has begun it, and has not noted
that it is done.`, (*client.Client).Effects, func(all leadership.Effects) error {
		rows := [][]string{{"EFFECT", "STATE", "AT", "BY", "TOKEN", "RESULT"}}
		for _, e := range all.Effects {
			rows = append(rows, []string{string(e.ID), string(e.State), formatTime(e.At), string(e.LeaderID), fmt.Sprint(e.Token), printable(string(e.Result))})
		}
		return c.show(all, rows)
	})
}
