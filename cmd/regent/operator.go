package main

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"regent/cmd/regent/internal/apply"
	"regent/leadership"
	"regent/leadership/client"
)

// setting is a flag of configure. Without it the election keeps its value.
type setting struct {
	flag string
	keep func(wanted *leadership.Config, now leadership.Config)
}

var settings = []setting{
	{"lease", func(wanted *leadership.Config, now leadership.Config) { wanted.LeaseDuration = now.LeaseDuration }},
	{"max-lease", func(wanted *leadership.Config, now leadership.Config) { wanted.MaxLeaseDuration = now.MaxLeaseDuration }},
	{"lock-delay", func(wanted *leadership.Config, now leadership.Config) { wanted.LockDelay = now.LockDelay }},
	{"retire-after", func(wanted *leadership.Config, now leadership.Config) { wanted.RetireAfter = now.RetireAfter }},
	{"policy", takePolicy},
	{"description", func(wanted *leadership.Config, now leadership.Config) { wanted.Description = now.Description }},
}

// takePolicy copies the settings that the flag --policy gives.
func takePolicy(to *leadership.Config, from leadership.Config) {
	to.Term, to.Ballot = from.Term, from.Ballot
	to.Seats, to.Promotion, to.LeadersOf, to.Delegation = from.Seats, from.Promotion, from.LeadersOf, from.Delegation
}

func (c *cli) configureCommand() *cobra.Command {
	var wanted leadership.Configure
	var policy leadership.Config
	cmd := &cobra.Command{
		Use:   "configure ELECTION [--lease DURATION] [--max-lease DURATION] [--lock-delay DURATION] [--retire-after DURATION] [--policy JSON] [--description TEXT]",
		Short: "Create an election, or change its configuration",
		Long: `Create an election, change its configuration, or restore a deleted one. Settings that are not given stay as they are. The
present lease keeps its duration; the next one gets the new duration.

The policy is given as a whole, as the API takes it; {} is none. Who should lead:
  strategy  firstCome (default), priority, capability, leastLoaded, random or roundRobin
  require   capabilities without which a candidate is refused; prefer: with strategy capability, those that count
  window    how long candidates bid once no candidate leads, up to 30s (default: 300ms; for firstCome without quorum 0s)
  preempt   true: a better candidate ends the term of a leader that has led for minTerm, at the end that it was promised
  quorum    {"electorate":[ids],"need":"majority" or a number,"grace":"10s"}: no lease is granted while fewer of the electorate
            are present, and after grace the election is read-only; see 'regent members' and 'regent check --write'
  leadersOf "orders.": only leaders of elections whose names begin so, and that are configured, can lead this one ('regent acquire --via')
  seats     so many leaders at most, from 1 to 100: 'regent acquire gpu' and 'regent run gpu' lead one of gpu.1, gpu.2 and so on
            (not with preempt and quorum)
  promotion true: a new leader must not write until it has said that it serves ('regent term serving', 'regent check --write')
  delegation {"depth":2,"children":8,"budget":50000}: what its leader may delegate ('regent delegate')
What limits a term: maxTerm, approval, stuckAfter, budget, errorRate, onTrip, cooldown, cooldownOf, verdicts. With cooldownOf
"principal" a trip bars all candidates that call as the leader's verified principal; else the one that has tripped.`,
		Example: `  regent configure reports --policy '{"strategy":"priority","window":"10s"}'
  regent configure reports --policy '{"strategy":"capability","require":["gpu"],"prefer":["eu"],"preempt":true,"minTerm":"5m"}'
  regent configure reports --policy '{"quorum":{"electorate":["node-1","node-2","witness-1"],"need":"majority"}}'
  regent configure reports --policy '{"maxTerm":"8h","stuckAfter":"5m"}'
  regent configure orders --policy '{"leadersOf":"orders."}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			wanted.Election = leadership.Election(args[0])
			takePolicy(&wanted.Config, policy)
			kept := slices.DeleteFunc(slices.Clone(settings), func(s setting) bool { return cmd.Flags().Changed(s.flag) })
			return answer(cmd.Context(), c, wanted, func(server *client.Client, ctx context.Context, wanted leadership.Configure) (leadership.Lease, error) {
				return configure(ctx, server, wanted, kept)
			}, c.printLease)
		},
	}
	cmd.Flags().Var(&value[time.Duration]{&wanted.Config.LeaseDuration, "", "DURATION", within(leadership.LeaseBounds)}, "lease", "how long a lease lasts unless its candidate asks for another duration, "+leadership.LeaseBounds.String()+" (default for a new election: 30s)")
	cmd.Flags().Var(&value[time.Duration]{&wanted.Config.MaxLeaseDuration, "", "DURATION", parseMaxLease}, "max-lease", "the longest lease that a candidate may ask for, "+leadership.MaxLeaseBounds.UpTo()+", or none (default for a new election: none)")
	cmd.Flags().Var(&value[time.Duration]{&wanted.Config.LockDelay, "", "DURATION", within(leadership.LockBounds)}, "lock-delay", "how long the election stays vacant after a lease that ended without a release, "+leadership.LockBounds.UpTo()+" (default for a new election: 0s)")
	cmd.Flags().Var(&value[time.Duration]{&wanted.Config.RetireAfter, "", "DURATION", parseRetireAfter}, "retire-after", "how long the election may be vacant before it is deleted, "+leadership.RetireBounds.String()+" (ten years); 0s keeps it for ever (default for a new election: 0s)")
	cmd.Flags().Var(&value[leadership.Config]{&policy, "", "JSON", parsePolicy}, "policy", "who should lead, and the limits of a term, as the API takes them, such as {\"strategy\":\"priority\",\"maxTerm\":\"8h\"}; {} for none")
	cmd.Flags().StringVar(&wanted.Config.Description, "description", "", "what the election is for, in at most 256 bytes; an empty text removes it")
	addCondition(cmd, &wanted.IfRevision)
	return c.remote(cmd)
}

// configure keeps the settings that were not given, also those of a deleted election. It reads them
// first, and writes only if the election has not changed since.
func configure(ctx context.Context, server *client.Client, wanted leadership.Configure, kept []setting) (leadership.Lease, error) {
	if len(kept) == 0 {
		return server.Do(ctx, wanted)
	}
	now, _, err := apply.Find(ctx, server, wanted.Election)
	if err != nil {
		return leadership.Lease{}, err
	}
	for _, s := range kept {
		s.keep(&wanted.Config, now.Config)
	}
	wanted.IfRevision = cmp.Or(wanted.IfRevision, now.Revision, leadership.NeverSeen)
	return server.Do(ctx, wanted)
}

func (c *cli) deleteCommand() *cobra.Command {
	var r leadership.Delete
	cmd := &cobra.Command{
		Use:   "delete ELECTION [--force]",
		Short: "Delete an election",
		Long: `Delete an election. If it has a leader, that takes --force: the leader learns of it at its next renewal, and no other
candidate can lead before its lease would have ended. The history and the fencing token stay: an election restored with
configure continues to count where it was.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Election = leadership.Election(args[0])
			return answer(cmd.Context(), c, r, do, c.printLease)
		},
	}
	cmd.Flags().BoolVar(&r.Force, "force", false, "delete it even if it has a leader")
	addCondition(cmd, &r.IfRevision)
	return c.remote(cmd)
}

func (c *cli) unlockCommand() *cobra.Command {
	var r leadership.Unlock
	cmd := &cobra.Command{
		Use:   "unlock ELECTION --reason TEXT [--acknowledge SENTENCE]",
		Short: "Let the next candidate lead at once; two may then believe that they lead",
		Long: `End a lease, or the wait after one, before its time, so that the next candidate can lead at once. This is for a lease that is
too long to wait for and whose leader cannot release it. It is the one command after which two leaders may believe that they
lead: the former one goes on until its next renewal is refused. Make sure that it has stopped. Fencing tokens still tell the
two apart.

Without --acknowledge it does nothing, and prints the sentence to repeat. The sentence names the instant until which the
former leader may believe, and is another after each renewal. Only the role admin may do this, and the election's history
keeps the reason.`,
		Example: `  regent admin unlock reports --reason "the host is gone"
  regent admin unlock reports --reason "the host is gone" --acknowledge "two leaders may believe until 2026-11-22T18:00:30.25Z"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Election, r.Actor = leadership.Election(args[0]), c.actor(r.Actor)
			return answer(cmd.Context(), c, r, do, c.printLease)
		},
	}
	c.addReason(cmd, "reason", "why, for the election's history", &r.Reason, &r.Actor)
	cmd.Flags().StringVar(&r.Acknowledge, "acknowledge", "", "the sentence that the refusal of this command states")
	return c.remote(cmd)
}

func addCondition(cmd *cobra.Command, r *leadership.Revision) {
	cmd.Flags().Var(&value[leadership.Revision]{r, "", "N", integers[leadership.Revision](1, math.MaxInt64, "must be the revision that status showed, 1 or more")}, "if-revision", "do it only if the election is still at this revision")
}
