package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
)

func (c *cli) handOverCommand() *cobra.Command {
	var r leadership.HandOver
	cmd := &cobra.Command{
		Use:   "hand-over ELECTION [--candidate ID] --token N [--to ID] [--within DURATION]",
		Short: "Name the successor of the present term",
		Long: `Name the successor of the present term, as its leader. The leader goes on until the successor has loaded what it needs
('regent term ready'); 'regent status' shows that. Then it stops, and says so with 'regent term yield': the successor
leads with its next acquire, without a vacancy, and no other candidate can lead in between. If the successor does not
come, the term ends within the time given anyway, and the next candidate in line leads.

Without --to the successor is the best candidate that waits in line; if none waits, the exit code is 1: release the lease
instead. 'regent run --hand-over' does all of this on the first SIGTERM or SIGINT.`,
		Example: `  regent hand-over reports --candidate agent-1 --token 7
  regent hand-over reports --candidate agent-1 --token 7 --to agent-2 --within 2m --reason "this host is drained"`,
	}
	cmd.Flags().Var(&value[leadership.CandidateID]{&r.To, "", "ID", parseCandidate}, "to", "the successor (default: the best candidate that waits)")
	cmd.Flags().Var(&value[time.Duration]{&r.Within, leadership.DefaultWithin.String(), "DURATION", between(leadership.MinWithin, leadership.MaxWithin)}, "within", "how long the hand-over may take, from 1s to 10m; the term ends then, but not before the end that was promised")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why, for the election's history: one line of at most 256 bytes")
	return leaseCommand(c, cmd, &r, &r.LeaseRequest, do)
}

func (c *cli) readyCommand() *cobra.Command {
	var r leadership.LeaseRequest
	return candidateCommand(c, &cobra.Command{
		Use:   "ready ELECTION [--candidate ID]",
		Short: "Say that the successor has loaded what it needs",
		Long: `Say that the candidate has loaded what it needs to lead. A successor that a leader has named says so before the leader stops,
with the key under which it is going to lead: no other key can take its place then. It waits in line meanwhile, with
'regent acquire --wait' under the same key.`,
	}, &r, &r, sayReady)
}

// sayReady says that the successor is ready, under the token of the present term.
func sayReady(server *client.Client, ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
	now, err := server.Get(ctx, r.Election)
	if err != nil {
		return leadership.Lease{}, err
	}
	r.Token = now.Token
	return server.Do(ctx, leadership.SayReady{LeaseRequest: r})
}

func (c *cli) servingCommand() *cobra.Command {
	var r leadership.SayServing
	return leaseCommand(c, &cobra.Command{
		Use:   "serving ELECTION [--candidate ID] --token N",
		Short: "Say that a new leader has loaded what it needs",
		Long: `Say that a new leader has loaded what it needs, where the policy of the election has "promotion":true: until then
'regent check --write' refuses its token.`,
	}, &r, &r.LeaseRequest, do)
}

func (c *cli) yieldCommand() *cobra.Command {
	var r leadership.Yield
	return leaseCommand(c, &cobra.Command{
		Use:   "yield ELECTION [--candidate ID] --token N",
		Short: "Stop leading in favour of a successor that is ready",
		Long: `Say that the leader has stopped, so that its successor can lead. From then on the leader must not act. Only the successor
that has said 'regent term ready' is granted the lease, in one step with the end of this term; if it does not come within
10s, or by the end of the lease, the next candidate in line leads. While no successor is ready the exit code is 3: yield
again later, or release the lease. The leader must not act in either case.`,
	}, &r, &r.LeaseRequest, do)
}

func (c *cli) requestApprovalCommand() *cobra.Command {
	var r leadership.RequestApproval
	cmd := &cobra.Command{
		Use:   "request-approval ELECTION --candidate ID --token N --note TEXT [--new-epoch]",
		Short: "Ask operators to let the term go on",
		Long: `Ask operators to let the present term go on, as its leader. This is for elections whose policy has "approval". The leader
keeps renewing meanwhile; operators see the request, and answer it with 'regent approve'. Asking again before they have
answered changes nothing. With --new-epoch the leader asks to go on under the next fencing token, as for a new task; the
operator must then approve with --new-epoch, too.`,
		Example: `  regent request-approval reports --candidate agent-1 --token 7 --note "the draft is ready"
  regent request-approval reports --candidate agent-1 --token 7 --note "the second report begins" --new-epoch`,
	}
	cmd.Flags().Var(&value[string]{&r.Note, "", "TEXT", parseText}, "note", "what to approve, for operators: one line of at most 256 bytes")
	cmd.Flags().BoolVar(&r.NewEpoch, "new-epoch", false, "ask to go on under the next fencing token")
	c.require(cmd, "note", "")
	return leaseCommand(c, cmd, &r, &r.LeaseRequest, do)
}

func (c *cli) delegateCommand() *cobra.Command {
	r := leadership.DelegateRequest{Limits: leadership.Limits{Depth: leadership.AsParent, Children: leadership.AsParent, Budget: leadership.AsParent}}
	cmd := &cobra.Command{
		Use:   "delegate ELECTION --child NAME [--candidate ID] --token N [--depth N] [--children N] [--budget N]",
		Short: "Make an election for a part of the leader's task",
		Long: `Make the election ELECTION.NAME for a part of the task, as the leader of ELECTION. Candidates acquire it like any other,
and a lease there ends no later than the leader's. The leader of the child may delegate in turn, within the limits given
here, which are taken from those of the parent. The limits of an election that was not delegated are in its policy
"delegation", by default 8 levels, 64 children and no budget. The same command again changes nothing.`,
		Example: `  regent delegate research --child sources --candidate agent-1 --token 7 --depth 2 --children 8 --budget 50000
  regent acquire research.sources --candidate agent-4`,
	}
	cmd.Flags().StringVar(&r.Child, "child", "", "the last part of the `NAME` of the election that is made")
	cmd.Flags().Var(&value[int]{&r.Limits.Depth, "", "N", parseLimit}, "depth", "how many levels there may be below the child (default: one less than below its parent)")
	cmd.Flags().Var(&value[int]{&r.Limits.Children, "", "N", parseLimit}, "children", "how many elections its leader may delegate (default: as many as the parent's)")
	cmd.Flags().Var(&value[int64]{&r.Limits.Budget, "", "N", parseLimit64}, "budget", "what the child gets of the parent's budget, in units of your choice (default: nothing)")
	c.require(cmd, "child", "")
	return leaseCommand(c, cmd, &r, &r.LeaseRequest, (*client.Client).Delegate)
}

func parseLimit(text string) (int, error) {
	n, err := parseLimit64(text)
	return int(min(n, 1<<31-1)), err
}

var parseLimit64 = integers[int64](0, math.MaxInt64, "must be an integer, 0 or more")

func (c *cli) treeCommand() *cobra.Command {
	return reading(c, "tree", "Draw an election with what was delegated below it", "", (*client.Client).Tree, c.printTree)
}

func (c *cli) printTree(t leadership.Tree) error {
	below := map[leadership.Election][]leadership.Lease{}
	for _, l := range t.Leases[1:] {
		below[l.Config.Delegation.Parent] = append(below[l.Config.Delegation.Parent], l)
	}
	rows := [][]string{{"ELECTION", "STATE", "LEADER", "TOKEN", "EXPIRES IN", "MAY DELEGATE"}}
	var draw func(l leadership.Lease, before, after string)
	draw = func(l leadership.Lease, before, after string) {
		rows = append(rows, append([]string{before + string(l.Election)}, treeCells(l)...))
		children := below[l.Election]
		for i, child := range children {
			corner, line := "├─ ", "│  "
			if i == len(children)-1 {
				corner, line = "└─ ", "   "
			}
			draw(child, after+corner, after+line)
		}
	}
	draw(t.Leases[0], "", "")
	if !t.Complete {
		rows = append(rows, []string{fmt.Sprintf("There are more: the first %d elections are shown.", len(t.Leases))})
	}
	return c.show(wire.NewTree(t), rows)
}

func treeCells(l leadership.Lease) []string {
	leader, expires := "-", "-"
	if l.State == leadership.Held {
		leader, expires = string(l.LeaderID), remaining(l.ExpiresIn)
	}
	limits := l.Config.Delegation.Limits()
	may := "-"
	if limits.Depth > 0 && limits.Children > 0 {
		may = fmt.Sprintf("%d, %d levels deep", limits.Children, limits.Depth)
		if limits.Depth == 1 {
			may = fmt.Sprintf("%d, 1 level deep", limits.Children)
		}
	}
	if limits.Budget > 0 {
		may += fmt.Sprintf(", budget %d", limits.Budget)
	}
	return []string{stateOf(l), leader, fmt.Sprint(l.Token), expires, may}
}
