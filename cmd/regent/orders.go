package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
)

type orderHelp struct {
	kind        leadership.OrderKind
	use         string // after the command's name and the election
	short, long string
	example     string
	many        bool // it may be given to many existing elections
	admin       bool // it is a subcommand of 'regent admin'
}

// orders are the commands that give an operator's orders.
var orders = []orderHelp{
	{
		kind: leadership.OrderAssign, use: "--candidate ID --for DURATION --reason TEXT", short: "Let only one candidate lead for a time",
		long: "Until the time is over only this candidate is granted the lease. If another one leads, its term ends at the end that it was\n" +
			"promised, and is not renewed beyond it.",
		example: `regent assign reports --candidate agent-7 --for 2h --reason "agent-7 has the cache"`,
	},
	{
		kind: leadership.OrderEvict, use: "--reason TEXT [--token N] [--ban DURATION [--candidate ID|ID*|--principal P]]", short: "End the present term",
		long: "The term ends at the end that its leader was promised: at most one lease from now. The leader hears of it at its next renewal.\n" +
			"Of an election with seats name one, as gpu.2, or all: 'gpu.*'.\n" +
			"With --ban its candidate is not granted the lease for that long, under any key; with --candidate, a pattern that covers it, or\n" +
			"--principal what that names, as for 'regent ban'.",
		example: `regent evict reports --ban 1h --reason "it writes nonsense"
  regent evict --leader agent-7 --reason "its host is sold" --dry-run`,
		many: true,
	},
	{
		kind: leadership.OrderPause, use: "--for DURATION --reason TEXT [--mode freeze|drain]", short: "Let no candidate lead for a time",
		long: "No candidate is granted the lease until the time is over. The present leader goes on; with --mode drain its term ends too, at\n" +
			"the end that it was promised.",
		example: `regent pause reports --for 30m --mode drain --reason "the database is being moved"
  regent pause 'jobs.*' --for 30m --mode drain --reason "the database is being moved"`,
		many: true,
	},
	{
		kind: leadership.OrderResume, use: "--reason TEXT", short: "End a pause",
		long:    "Candidates are granted the lease again, and a leader whose term was to end because of the pause goes on.",
		example: `regent resume reports --reason "the database has moved"`,
		many:    true,
	},
	{
		kind: leadership.OrderBan, use: "--candidate ID|ID*|--principal P --for DURATION --reason TEXT", short: "Let a candidate not lead for a time",
		long: "The candidate is not granted the lease, under any key. A pattern, with a * at the end and at least three characters before it,\n" +
			"stands for all candidates whose ids begin so, those that come later too; with --principal no candidate is granted that calls as\n" +
			"that principal, as the history names it (an e-mail, or ISSUER|SUBJECT). If it leads, it goes on: evict it as well.",
		example: `regent ban reports --candidate agent-7 --for 24h --reason "it is being repaired"
  regent ban reports --candidate 'writer-*' --for 24h --reason "this version writes nonsense"`,
		many: true,
	},
	{
		kind: leadership.OrderApprove, use: "--token N --reason TEXT [--for DURATION] [--new-epoch]", short: "Let the leader go on",
		long: "Where the policy asks for approvals, this is one of those that the present term needs to go on. With --new-epoch the leader goes\n" +
			"on under the next fencing token, so that what was begun before is stale. If the election is parked, as its policy's series says,\n" +
			"it goes on, and the count begins anew: see 'regent why ELECTION' before.",
		example: `regent approve reports --token 12 --reason "checked the draft"`,
	},
	{
		kind: leadership.OrderLift, use: "--override ID --reason TEXT", short: "End one standing order, or a cooldown",
		long:    "The id is that of 'regent overrides'.",
		example: `regent admin lift reports --override ban-17 --reason "repaired"`,
		admin:   true,
	},
	{
		kind: leadership.OrderHalt, use: "--for DURATION --reason TEXT", short: "Let no candidate lead any election of a pattern for a time",
		long: "The pattern is the beginning of names and a *, or a * alone for all elections. Until the time is over no candidate is granted any\n" +
			"of these elections, also none that does not exist yet. Each server knows of it within five seconds, and at once where it hears of\n" +
			"the others. Present leaders go on until they end: to stop them, too, give 'regent pause PATTERN --mode drain'. A halt takes the\n" +
			"place of the one of the same pattern.",
		example: `regent halt 'jobs.*' --for 2h --reason "the queue is poisoned"`,
	},
	{
		kind: leadership.OrderUnhalt, use: "--reason TEXT", short: "End the halt of a pattern",
		long:    "The pattern is that of 'regent halts'.",
		example: `regent unhalt 'jobs.*' --reason "the queue is drained"`,
	},
}

func (c *cli) orderCommands(admin bool) (all []*cobra.Command) {
	for _, o := range orders {
		if o.admin == admin {
			all = append(all, c.orderCommand(o))
		}
	}
	return all
}

func (c *cli) orderCommand(o orderHelp) *cobra.Command {
	r := leadership.Order{Kind: o.kind}
	var m many
	about, roles := "ELECTION", "Only the roles operator and admin may do this."
	if r.Kind.Halts() {
		about = "'PATTERN*'"
	}
	if r.Kind == leadership.OrderHalt {
		roles = "The roles halter, operator and admin may do this."
	}
	cmd := &cobra.Command{
		Use:               string(o.kind) + " " + about + " " + o.use,
		Short:             o.short,
		Long:              o.long + "\n\nThe election's history keeps the reason and the actor. " + roles,
		Args:              o.args(&m),
		ValidArgsFunction: c.completeElection,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Actor = c.actor(r.Actor)
			if o.many && m.meant(args) {
				return c.orderMany(cmd.Context(), m, append(args, "*")[0], r)
			}
			r.Election = leadership.Election(args[0])
			if r.Kind.Halts() {
				return answer(cmd.Context(), c, r, do, func(l leadership.Lease) error {
					return c.printHalts(l.Overrides.At(l.ReadAt))
				})
			}
			return answer(cmd.Context(), c, r, giveOrder, func(l leadership.Lease) error {
				if err := c.printLease(l); err != nil || l.State != leadership.Held {
					return err
				}
				return c.tellFrozen(r, l.LeaderID)
			})
		},
	}
	cmd.Example = "  " + o.example
	fields := o.kind.Fields()
	for _, field := range fields.Needed {
		c.require(cmd, c.addOrderFlag(cmd, field, &r), "")
	}
	for _, field := range fields.Optional {
		c.addOrderFlag(cmd, field, &r)
	}
	c.addReason(cmd, "reason", "why, for the election's history", &r.Reason, &r.Actor)
	addCondition(cmd, &r.IfRevision)
	if o.many {
		m.add(cmd)
	}
	return c.remote(cmd)
}

// giveOrder gives an order. An eviction names the present term, so that a repeated one cannot evict
// the next leader. An approval names the revision it was decided on, so that it counts once. An
// eviction fails if no candidate leads.
func giveOrder(server *client.Client, ctx context.Context, r leadership.Order) (leadership.Lease, error) {
	evict, approve := r.Kind == leadership.OrderEvict && r.Token == 0, r.Kind == leadership.OrderApprove && r.IfRevision == 0
	if !evict && !approve {
		return server.Do(ctx, r)
	}
	now, err := server.Get(ctx, r.Election)
	switch {
	case err != nil:
		return leadership.Lease{}, err
	case approve, now.Config.Seats > 0: // for seats the server's error says what to evict
		r.IfRevision = now.Revision
	case now.State != leadership.Held:
		return leadership.Lease{}, fmt.Errorf("no candidate leads election %q, so there is no term to end; ban a candidate by its id", r.Election)
	default:
		r.Token = now.Token
	}
	l, err := server.Do(ctx, r)
	if approve && unreachable(err) {
		err = unsureApproval{err, r.IfRevision}
	}
	return l, err
}

// unsureApproval is the error of an approval that may have been counted, at a revision that the
// caller has not named.
type unsureApproval struct {
	error
	at leadership.Revision
}

func (e unsureApproval) Unwrap() error { return e.error }

// tellFrozen says, after a pause that lets the leader go on, how to end its term as well.
func (c *cli) tellFrozen(r leadership.Order, leader leadership.CandidateID) error {
	if r.Kind != leadership.OrderPause || r.Mode == leadership.PauseDrain || c.output == document {
		return nil
	}
	_, err := fmt.Fprintf(c.err, "%s leads, and goes on. To end its term, too, give this pause with --mode drain, or 'regent evict'.\n", leader)
	return err
}

// addOrderFlag adds the flag of a field that some orders take, and returns its name.
func (c *cli) addOrderFlag(cmd *cobra.Command, field string, o *leadership.Order) (flag string) {
	flags := cmd.Flags()
	switch flag = field; field {
	case "candidateId":
		flag = "candidate"
		parse, help := parsePattern, "the candidate, or all whose ids begin as in 'writer-*'"
		if o.Kind == leadership.OrderAssign {
			parse, help = parseCandidate, "the candidate"
		}
		flags.Var(&value[leadership.CandidateID]{&o.CandidateID, "", "ID", parse}, flag, help)
	case "principal":
		flags.StringVar(&o.Principal, flag, "", "the verified principal, in place of a candidate")
	case "for":
		flags.Var(&value[time.Duration]{&o.For, "", "DURATION", within(leadership.OrderBounds)}, flag, "for how long, "+leadership.OrderBounds.String()+" (30 days)")
	case "mode":
		addChoice(c, cmd, &o.Mode, leadership.PauseFreeze, flag, "MODE", "freeze: the present leader goes on; drain: its term ends too", leadership.PauseFreeze, leadership.PauseDrain)
	case "fencingToken":
		flag = "token"
		flags.Var(&value[leadership.Token]{&o.Token, "", "N", parseToken}, flag, "the fencing token of the term that is meant")
	case "ban":
		flags.Var(&value[time.Duration]{&o.Ban, "", "DURATION", within(leadership.OrderBounds)}, flag, "how long the leader's candidate is not granted the lease, "+leadership.OrderBounds.String()+" (30 days)")
	case "newEpoch":
		flag = "new-epoch"
		flags.BoolVar(&o.NewEpoch, flag, false, "let the leader go on under the next fencing token")
	case "override":
		flags.Var(&value[leadership.OverrideID]{&o.Override, "", "ID", parseOverride}, flag, "the id of the standing order")
	}
	return flag
}

func (c *cli) addReason(cmd *cobra.Command, flag, help string, reason, actor *string) {
	c.offerReason(cmd, flag, help, reason, actor)
	c.require(cmd, flag, "")
}

// offerReason is addReason for a command with a reason of its own.
func (c *cli) offerReason(cmd *cobra.Command, flag, help string, reason, actor *string) {
	cmd.Flags().Var(&value[string]{reason, *reason, "TEXT", parseText}, flag, help+": one line of at most 256 bytes")
	cmd.Flags().Var(&value[string]{actor, "", "NAME", parseText}, "actor", "the actor, if the server does not verify its callers (default: the user of this machine)")
	c.from(cmd, "actor")
}

// actor returns the actor that a command names. A server that verifies callers ignores it.
func (c *cli) actor(named string) string {
	if named != "" || c.bearer.credential() != nil {
		return named
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "unknown"
}

func (c *cli) overridesCommand() *cobra.Command {
	return reading(c, "overrides", "Show the standing orders of an election", "", (*client.Client).Overrides, c.printOverrides)
}

func (c *cli) printOverrides(all []leadership.Override) error {
	rows := [][]string{{"ID", "KIND", "CANDIDATE", "ENDS IN", "BY", "REASON"}}
	for _, o := range all {
		kind := string(o.Kind)
		if o.Mode != "" {
			kind += " (" + string(o.Mode) + ")"
		}
		rows = append(rows, []string{string(o.ID), kind, cmp.Or(barred(o.CandidateID, o.Principal), "-"), remaining(o.Left), printable(o.Actor), printable(o.Reason)})
	}
	return c.show(wire.NewOverrides(all), rows)
}

func (c *cli) haltsCommand() *cobra.Command {
	return c.remote(&cobra.Command{
		Use:   "halts",
		Short: "Show the halts, which are the standing orders of election " + string(leadership.HaltsElection),
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return answer(cmd.Context(), c, leadership.HaltsElection, readHalts, c.printHalts)
		},
	})
}

func readHalts(server *client.Client, ctx context.Context, e leadership.Election) ([]leadership.Override, error) {
	all, err := server.Overrides(ctx, e)
	if errors.Is(err, leadership.NotFound) { // there never was a halt
		err = nil
	}
	return all, err
}

func (c *cli) printHalts(all []leadership.Override) error {
	rows := [][]string{{"ELECTIONS", "ENDS IN", "BY", "REASON"}}
	for _, o := range all {
		rows = append(rows, []string{string(o.Elections), remaining(o.Left), printable(o.Actor), printable(o.Reason)})
	}
	return c.show(wire.NewOverrides(all), rows)
}

// barred returns the object of a ban in words: a candidate or a pattern, a principal, or both.
func barred(c leadership.CandidateID, principal string) string {
	switch {
	case principal == "":
		return string(c)
	case c == "":
		return "principal " + printable(principal)
	}
	return fmt.Sprintf("%s, principal %s", c, printable(principal))
}

func (c *cli) judgeCommand() *cobra.Command {
	var r leadership.Judge
	cmd := &cobra.Command{
		Use:   "judge ELECTION --token N --verdict bad|good --evidence TEXT",
		Short: "Judge the work of the present leader",
		Long: `Judge the work that was done under a fencing token. Of each verifier the last verdict on a term counts. As many bad ones as
the election's policy says end the term. Only the roles verifier and admin may do this.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Election, r.Actor = leadership.Election(args[0]), c.actor(r.Actor)
			return answer(cmd.Context(), c, r, do, c.printLease)
		},
	}
	cmd.Flags().Var(&value[leadership.Token]{&r.Token, "", "N", parseToken}, "token", "the fencing token of the work")
	addChoice(c, cmd, &r.Verdict, "", "verdict", "VERDICT", "bad or good", leadership.VerdictBad, leadership.VerdictGood)
	c.require(cmd, "token", "REGENT_TOKEN")
	c.require(cmd, "verdict", "")
	c.addReason(cmd, "evidence", "what the verdict rests on", &r.Evidence, &r.Actor)
	addCondition(cmd, &r.IfRevision)
	return c.remote(cmd)
}

func (c *cli) whyCommand() *cobra.Command {
	return c.remote(&cobra.Command{
		Use:   "why ELECTION [CANDIDATE]",
		Short: "Say why a candidate does not lead, or why the election has the leader that it has",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				if err := leadership.CandidateID(args[1]).Validate(); err != nil {
					return err
				}
				args = args[:1]
			}
			return oneElection(cmd, args)
		},
		ValidArgsFunction: c.completeElection,
		RunE: func(cmd *cobra.Command, args []string) error {
			e := leadership.Election(args[0])
			if len(args) == 2 {
				r := leadership.ExplainRequest{Election: e, CandidateID: leadership.CandidateID(args[1])}
				return answer(cmd.Context(), c, r, (*client.Client).Explain, c.printExplanation)
			}
			return c.ask(cmd.Context(), func(ctx context.Context, server *client.Client) error { return c.whyElection(ctx, server, e) })
		},
	})
}

// whyElection prints the reasons that apply to all candidates.
func (c *cli) whyElection(ctx context.Context, server *client.Client, e leadership.Election) error {
	l, err := server.Get(ctx, e)
	if err != nil {
		return err
	}
	all, err := server.Overrides(ctx, e)
	if err != nil {
		return err
	}
	if c.output == document {
		w := wire.NewLease(l)
		w.Overrides = wire.NewOverrides(all).Overrides
		return c.printDocument(w)
	}
	lines := append([]string{standing(l)}, successionLines(l)...)
	for _, o := range all {
		lines = append(lines, orderSentence(o))
	}
	switch {
	case l.Parked != "":
		lines = append(lines, fmt.Sprintf("It is parked: %s. If it shall go on, approve fencing token %d.", printable(l.Parked), l.Token))
	case l.State == leadership.Vacant:
		x, err := server.Explain(ctx, leadership.ExplainRequest{Election: e, CandidateID: "-"}) // no candidate has this id, so only general reasons apply
		if err != nil {
			return err
		}
		for _, cause := range x.Causes {
			switch cause.Code {
			case leadership.ReasonHalted:
				lines = append(lines, sentence(cause, ""))
			case leadership.ReasonApproval:
				lines = append(lines, fmt.Sprintf("The last term ended without an operator's approval, and none is granted before it: approve fencing token %d.", l.Token))
			}
		}
	}
	return c.printLines(lines...)
}

func standing(l leadership.Lease) string {
	switch {
	case l.State == leadership.Held && l.EndsBecause != "":
		return fmt.Sprintf("Candidate %s leads with fencing token %d; its lease ends in %s unless it renews it, and in %s at the latest (%s).",
			l.LeaderID, l.Token, remaining(l.ExpiresIn), remaining(l.EndsIn), l.EndsBecause)
	case l.State == leadership.Held:
		return fmt.Sprintf("Candidate %s leads with fencing token %d; its lease ends in %s unless it renews it.", l.LeaderID, l.Token, remaining(l.ExpiresIn))
	case l.Config.Seats > 0:
		return fmt.Sprintf("It has seats, each with a leader of its own: see 'regent members %s'.", l.Election)
	case l.LockedFor > 0:
		return fmt.Sprintf("No candidate leads; after the last lease none is granted for another %s.", remaining(l.LockedFor))
	}
	return "No candidate leads."
}

// successionLines describe the lease that the leader's term stands on, and its succession.
func successionLines(l leadership.Lease) (lines []string) {
	if l.State != leadership.Held {
		return nil
	}
	if l.NotServing {
		lines = append(lines, "It has not said yet that it serves, so it must not write.")
	}
	if via := viaText(l.Parent); via != "" {
		lines = append(lines, fmt.Sprintf("Its lease stands on that of %s, and ends with it at the latest.", via))
	}
	if s := l.Succession; s.To != "" {
		lines = append(lines, fmt.Sprintf("It hands over %s; its term ends in %s, whether or not the successor has come.", successionText(l), remaining(s.Left)))
	}
	return lines
}

func orderSentence(o leadership.Override) string {
	text := fmt.Sprintf("Candidate %s is banned", o.CandidateID)
	if o.Principal != "" {
		text = fmt.Sprintf("Principal %s is banned", o.Principal)
		if o.CandidateID != "" {
			text += fmt.Sprintf(", as which candidate %s called,", o.CandidateID)
		}
	}
	switch o.Kind {
	case leadership.OverrideAssign:
		text = fmt.Sprintf("Only candidate %s is granted the lease", o.CandidateID)
	case leadership.OverridePause:
		text = "The election is paused"
	case leadership.OverrideHalt:
		text = fmt.Sprintf("All elections of %s are halted", o.Elections)
	}
	return printable(fmt.Sprintf("%s for another %s (%s: %s).", text, remaining(o.Left), o.Actor, o.Reason))
}

func (c *cli) printExplanation(x leadership.Explanation) error {
	first := fmt.Sprintf("Candidate %s does not lead election %s.", x.CandidateID, x.Election)
	if x.Leads {
		e := x.Election
		if x.Seat > 0 {
			e = e.Seat(x.Seat)
		}
		first = fmt.Sprintf("Candidate %s leads election %s.", x.CandidateID, e)
	}
	rows := [][]string{{first}}
	for _, cause := range x.Causes {
		rows = append(rows, []string{sentence(cause, x.CandidateID)})
	}
	if !x.Leads && len(x.Causes) == 0 {
		rows = append(rows, []string{"Nothing is in its way: it has to ask."})
	}
	return c.show(wire.NewExplanation(x), rows)
}

// sentence returns a cause in words, for the candidate id.
func sentence(cause leadership.Cause, id leadership.CandidateID) string {
	text := cmp.Or(map[leadership.Reason]string{
		leadership.ReasonHeld:        "candidate " + string(cause.LeaderID) + " leads",
		leadership.ReasonIncarnation: "it leads already, under another key",
		leadership.ReasonLockDelay:   "the last lease ended without a release, so no lease is granted yet",
		leadership.ReasonPaused:      "the election is paused",
		leadership.ReasonHalted:      "all elections of " + string(cause.Elections) + " are halted",
		leadership.ReasonBanned:      "candidate " + string(id) + " is banned",
		leadership.ReasonAssigned:    "the election is assigned to another candidate",
		leadership.ReasonApproval:    "an operator's approval is needed",
		leadership.ReasonParked:      "the election is parked until an operator approves",
		leadership.ReasonSeats:       "it is no seat any more: the election has fewer now",
		leadership.ReasonProbation:   "it is on probation: its leases are short",
		leadership.ReasonInLine:      fmt.Sprintf("it waits in line, at place %d of %d", cause.Position, cause.Of),
		leadership.ReasonNotAsking:   "it does not ask for the lease at the server that was asked",
		leadership.ReasonRights:      "its caller may not lead this election",
		leadership.ReasonBallot:      fmt.Sprintf("it has the best of %d bids, and bids are still collected", cause.Of),
		leadership.ReasonOutranked:   fmt.Sprintf("it has bid, and is at place %d of %d; if those before it have gone, its turn comes", cause.Position, cause.Of),
		leadership.ReasonQuorum:      fmt.Sprintf("the election needs %d members of its electorate present, and has %d", cause.Need, cause.Have),
		leadership.ReasonParent:      "the election is a part of another one, which has no leader",
		leadership.ReasonWitness:     "it is a witness, which never leads",
	}[cause.Code], string(cause.Code))
	switch {
	case cause.Principal != "":
		text = "principal " + cause.Principal + " is banned, and the candidate if it calls as that"
	case cause.Pattern != "":
		text += ", as each candidate of " + string(cause.Pattern)
	}
	switch {
	case cause.Left == 0:
	case cause.Code == leadership.ReasonHeld:
		text += fmt.Sprintf("; its lease ends in %s unless it renews it", remaining(cause.Left))
	case cause.Code == leadership.ReasonApproval:
		text += " within " + remaining(cause.Left)
	case cause.Code == leadership.ReasonOutranked:
		text += " in " + remaining(cause.Left)
	case cause.Code == leadership.ReasonQuorum, cause.Code == leadership.ReasonWitness:
	default:
		text += ", for another " + remaining(cause.Left)
	}
	if cause.Because != "" {
		text += fmt.Sprintf(" (%s: %s)", cmp.Or(cause.Actor, "unknown"), cause.Because)
	}
	return strings.ToUpper(text[:1]) + printable(text[1:]) + "."
}

func (c *cli) printLines(lines ...string) error {
	_, err := fmt.Fprintln(c.out, strings.Join(lines, "\n"))
	return err
}
