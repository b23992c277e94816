package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
)

func (c *cli) membersCommand() *cobra.Command {
	return reading(c, "members", "Show an election as a cluster: who takes part, and which leader each follows", `Show the members of an election: its leader, the candidates and witnesses that wait, and those that have joined. TOKEN is
the fencing token that a member follows, if it has reported one; HEARD, how long ago it was last heard of; POSITION, its
place in the line of its instance. A member that is not heard of any more vanishes. For an election with seats the members
of each seat are shown, too, and SEAT is its number.

The last lines say how the cluster stands:
  healthy   the leader leads, and no member follows another token
  diverged  a member still follows another token than the leader's
  noLeader  no candidate leads, at no seat
  noQuorum  fewer members of the electorate are present than the policy needs: none is granted the lease
  participation   the part of the electorate that is present; without an electorate, of the members that follow the leader
  incomplete      only the members at the instance that was asked are shown: its server has no topic for the others`, (*client.Client).Members, c.printMembers)
}

func (c *cli) printMembers(m leadership.Members) error {
	rows := [][]string{{"ID", "ROLE", "TOKEN", "HEARD", "POSITION", "NOTE", "SEAT"}}
	for _, one := range m.Members {
		rows = append(rows, []string{
			string(one.ID), string(one.Role), numberOrDash(int64(one.SeenToken)), remaining(one.HeardAgo) + " ago", numberOrDash(int64(one.Position)), printable(one.Note), numberOrDash(int64(one.Seat)),
		})
	}
	if m.Seats == 0 {
		for i, row := range rows {
			rows[i] = row[:len(row)-1]
		}
	}
	for _, line := range membersSummary(m) {
		rows = append(rows, []string{line})
	}
	return c.show(wire.NewMembers(m), rows)
}

func numberOrDash(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func membersSummary(m leadership.Members) []string {
	leader := "no leader"
	switch {
	case m.LeaderID != "":
		leader = fmt.Sprintf("%s leads with fencing token %d", m.LeaderID, m.Token)
	case m.Seats > 0:
		led := 0
		for _, one := range m.Members {
			if one.Role == leadership.RoleLeader {
				led++
			}
		}
		leader = fmt.Sprintf("%d of %d seats led", led, m.Seats)
	}
	members := "1 member"
	if n := len(m.Members); n != 1 {
		members = fmt.Sprintf("%d members", n)
	}
	text := fmt.Sprintf("%s: %s, %s, participation %.0f %%", m.Status, members, leader, 100*m.Participation)
	if !m.Complete {
		text += "; incomplete"
	}
	lines := []string{text}
	if q := m.Quorum; q != nil {
		text = fmt.Sprintf("quorum: %d of %d present, %d needed, %d may fail", q.Present, q.Size, q.Need, q.ToleratedFailures)
		if m.ReadOnly {
			text += "; read-only: do not write"
		}
		lines = append(lines, text)
	}
	return lines
}

func (c *cli) joinCommand() *cobra.Command {
	var config client.MemberConfig
	cmd := &cobra.Command{
		Use:   "join ELECTION ID [--role follower|worker|witness] [--ttl DURATION] [--note TEXT]",
		Short: "Be a member of an election until interrupted",
		Long: `Be a member of an election, so that 'regent members' shows it, leaders can wait for it (see 'regent run --help',
--await-followers), and an electorate counts it as present. It prints the leader, and each change of leader, until SIGINT
or SIGTERM; then it leaves. If it is killed, it vanishes once --ttl is over. A member follows each new fencing token at
once.

A follower obeys the leader, a worker does its tasks, and a witness counts for the quorum without leading; Regent treats
them alike. The id must not be that of another member or candidate.

With --output json each line is a document: {"election":…,"leader":…,"fencingToken":…}, without a leader while there is none.`,
		Example: `  regent join reports node-2
  regent join reports worker-17 --role worker --note "shard 3"
  regent join reports witness-1 --role witness --ttl 10s`,
		Args:              electionAnd("member's id", leadership.CandidateID.Validate),
		ValidArgsFunction: c.completeElection,
		RunE: func(cmd *cobra.Command, args []string) error {
			config.ID = leadership.CandidateID(args[1])
			return c.join(cmd.Context(), leadership.Election(args[0]), config)
		},
	}
	config.Role = leadership.RoleFollower
	addChoice(c, cmd, &config.Role, leadership.RoleFollower, "role", "ROLE", "follower, worker or witness", leadership.RoleFollower, leadership.RoleWorker, leadership.RoleWitness)
	cmd.Flags().Var(&value[time.Duration]{&config.TTL, "30s", "DURATION", between(leadership.MinMemberTTL, leadership.MaxMemberTTL)}, "ttl", "how long the member counts after it was last heard of, from 10s to 5m; it joins again every third of it")
	cmd.Flags().StringVar(&config.Note, "note", "", "what the member does, for people: one line of at most 256 bytes")
	return c.remote(cmd)
}

type joinedDocument struct {
	Election leadership.Election    `json:"election"`
	Leader   leadership.CandidateID `json:"leader,omitzero"`
	Token    leadership.Token       `json:"fencingToken"`
}

// join stays a member until a signal or a permanent error comes. It fails if it has not joined
// within --timeout of the start; until then the election need not exist.
func (c *cli) join(ctx context.Context, e leadership.Election, config client.MemberConfig) error {
	server, err := c.connectWith(client.Config{Log: newLog(c.err)})
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	member, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(c.timeout, func() { cancel(c.noAnswer()) })
	defer late.Stop()
	var failed error // the error of the last join
	config.Failed = func(err error) { failed = err }
	config.Told = func(leader leadership.CandidateID, token leadership.Token) {
		late.Stop()
		failed = nil
		if err := c.printJoined(joinedDocument{e, leader, token}); err != nil {
			cancel(err)
		}
	}
	err = server.Member(member, e, config)
	switch {
	case err != nil || ctx.Err() != nil:
		return err
	case errors.Is(failed, leadership.NotFound), errors.Is(failed, leadership.LimitExceeded):
		return failed // the server has answered
	}
	return context.Cause(member)
}

func (c *cli) printJoined(d joinedDocument) error {
	text := "No candidate leads."
	if d.Leader != "" {
		text = fmt.Sprintf("Candidate %s leads with fencing token %d.", d.Leader, d.Token)
	}
	return c.show(d, [][]string{{text}})
}
