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

const runHelp = `Run a command only while leading an election. Regent waits for leadership, starts the command, and keeps the lease for as long as
it runs. When the lease is lost or cannot be renewed, the command is stopped: with SIGTERM, and with SIGKILL after --grace, so that
it and all that it started is gone before the lease ends. The lease is given back only after that.

The command finds in its environment
  REGENT_ELECTION, REGENT_CANDIDATE_ID, REGENT_SERVER
  REGENT_FENCING_TOKEN   send it with each write, and have older ones refused there
  REGENT_DEADLINE_FILE   a file whose first line is when the command will have been killed unless the lease is renewed, in
                         milliseconds of CLOCK_BOOTTIME (/proc/uptime); the second is the same for people. It is replaced
                         with each renewal. Read it before each step that matters.
The lease's key is nowhere, and REGENT_KEY and REGENT_TOKEN are taken out.

The command has standard input, output and error, all other open files but number 3, and the terminal if regent has it; there Ctrl-Z
does not stop it. A command that stops itself elsewhere keeps the lease. Signals that regent gets (INT, TERM, HUP, QUIT, USR1, USR2, WINCH) are passed on to its process group. While waiting, the first four end the
wait. When the command ends by itself, what is left of its group is killed.

With --restart regent campaigns and starts the command again whenever it has ended, by itself with any exit code or because
leadership was lost, until one of those four signals comes or the command cannot be executed. After a command that ended by itself
within 10s there is a pause, from 100ms up to 30s, during which others may lead.

If regent itself is killed, the command dies with it; if it is stopped, a second process, the guard, kills the command at the
deadline. If both are stopped, or get no time to run, nobody does: then the fencing token alone protects. The same goes for
processes that the command starts in a group of their own and with an environment of their own.

Exit codes: the command's own, or 128+N if signal N killed it, and
  3  another candidate leads (with --no-wait)    6  the wait is over, and somebody else led
  5  the server could not be reached
  120  leadership was lost, and the command was stopped
  121  the lease could not be renewed in time, and the command was stopped
  122  there was no guard to be had, and the command was stopped or not started
  125  regent could not run the command
  126  the command cannot be executed            127  there is no such command
  128+N  signal N ended the wait`

// The exit codes of run that are about its command; those below 120 mean what they mean everywhere.
const (
	exitLeadershipLost = 120
	exitNotRenewed     = 121
	exitNoGuard        = 122
	exitNotRun         = 125
	exitNotExecutable  = 126
	exitNotFound       = 127
	exitSignal         = 128 // and the signal's number
)

// runFlags say how to run a command.
type runFlags struct {
	candidate client.Candidate
	wait      time.Duration
	noWait    bool
	grace     time.Duration
	restart   bool
}

func (c *cli) runCommand() *cobra.Command {
	f := runFlags{wait: forever, grace: byLease}
	cmd := &cobra.Command{
		Use:   "run ELECTION [flags] -- COMMAND...",
		Short: "Run a command only while leading",
		Long:  runHelp,
		Example: `  regent run reports -- ./make-reports --all
  regent run reports --lease 10s --restart -- sh -c 'exec worker --token "$REGENT_FENCING_TOKEN"'
  regent run nightly --no-wait -- ./backup`,
		Args:              electionAndCommand,
		ValidArgsFunction: c.completeElection,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.noWait && cmd.Flags().Changed("wait") {
				return usagef("give --no-wait or --wait, not both")
			}
			return c.run(cmd.Context(), f, args)
		},
	}
	flags := cmd.Flags()
	flags.Var(&value[leadership.CandidateID]{&f.candidate.ID, "", "ID", parseCandidate}, "candidate", "the candidate that leads (default: one that nobody else has)")
	c.from(cmd, "candidate", "REGENT_CANDIDATE")
	flags.Var(&value[time.Duration]{&f.candidate.LeaseDuration, "", "DURATION", parseLease}, "lease", "how long the lease lasts, from 1s to 24h (default: as the election is configured)")
	flags.Var(&value[[]byte]{&f.candidate.Metadata, "", "JSON", parseMetadata}, "metadata", "a JSON object that the leader tells of itself, such as its address")
	flags.Var(&value[time.Duration]{&f.wait, "forever", "DURATION", parseWait}, "wait", "how long to stand in line while somebody else leads, up to 24h, or forever")
	c.complete(cmd, "wait", "30s", "5m", "forever")
	flags.BoolVar(&f.noWait, "no-wait", false, "do not stand in line")
	flags.Var(&value[time.Duration]{&f.grace, "", "DURATION", parseGrace}, "grace", "the time between SIGTERM and SIGKILL, up to a third of the lease (default: a tenth of it, 5s at most)")
	flags.BoolVar(&f.restart, "restart", false, "campaign again when the command has ended")
	c.addRemote(cmd)
	return cmd
}

// electionAndCommand are the arguments of run.
func electionAndCommand(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash < 0 || dash == len(args):
		return errors.New("run needs a command, after --, as in: regent run ELECTION -- COMMAND")
	default:
		return oneElection(cmd, args[:dash])
	}
}

const (
	// byLease is a grace that depends on the lease.
	byLease  time.Duration = -1
	maxGrace               = 5 * time.Second // unless more is asked for
)

func parseGrace(text string) (time.Duration, error) {
	return parseDuration(text, 0, leadership.MaxLeaseDuration/3)
}

// validate finds what does not go together.
func (f runFlags) validate() error {
	if lease := f.candidate.LeaseDuration; lease > 0 && f.grace > lease/3 {
		return usagef("--grace is at most a third of the lease, which is %v of %v: what is left is the time to renew", lease/3, lease)
	}
	return nil
}

// graceOf is the time between SIGTERM and SIGKILL under a lease that was just granted; less than was asked for if the grant was so slow that little is
// left.
func (f runFlags) graceOf(l *client.Lease) (time.Duration, error) {
	grace := f.grace
	switch {
	case grace == byLease:
		grace = min(l.Duration()/10, maxGrace)
	case grace > l.Duration()/3:
		return 0, usagef("--grace is at most a third of the lease, which is %v of %v, and not %v; ask for a longer lease with --lease", l.Duration()/3, l.Duration(), grace)
	}
	return min(grace, l.Remaining()/2), nil
}

// ended is the exit code of a run, and an error if there is more to say than the log does.
type ended struct {
	code int
	error
}

func (e ended) Unwrap() error { return e.error }

func (e ended) Error() string {
	if e.error == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.error.Error()
}

// run runs the command of args[1:] while leading the election args[0].
func (c *cli) run(ctx context.Context, f runFlags, args []string) error {
	if err := f.validate(); err != nil {
		return err
	}
	r, err := c.newRunner(f, leadership.Election(args[0]), args[1:])
	if err != nil {
		return err
	}
	defer r.listen()()
	defer r.said.drain()
	return r.run(ctx)
}
