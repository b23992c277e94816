package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/client"
)

const runHelp = `Run a command only while leading an election. Regent waits for leadership, starts the command, and renews the lease while
it runs. When the lease is lost or cannot be renewed, regent stops the command: with SIGTERM, and with SIGKILL after
--grace, so that it and everything it started is gone before the lease ends. Only then is the lease released.

The command's environment contains
  REGENT_ELECTION, REGENT_CANDIDATE_ID, REGENT_SERVER
  REGENT_SEAT            the number of the seat, of an election with seats, whose name REGENT_SEAT_OF has
  REGENT_FENCING_TOKEN   send it with each write, and have lower ones refused there
  REGENT_DEADLINE_FILE   a file whose first line is when the command will have been killed unless the lease is renewed, in
                         milliseconds of CLOCK_BOOTTIME (/proc/uptime); the second line is the same for people. It is
                         replaced with each renewal. Read it before each step that matters.
It does not contain the lease's key: REGENT_KEY and REGENT_TOKEN are removed.

The command inherits standard input, output and error, all other open files but number 3, and the terminal if regent has
it; there Ctrl-Z does not stop it. Elsewhere a command that stops itself keeps the lease. Regent passes the signals INT,
TERM, HUP, QUIT, USR1, USR2 and WINCH on to the command's process group. While regent waits, the first four end the wait.
When the command ends by itself, the rest of its process group is killed.

With --restart regent campaigns and starts the command again whenever it has ended, by itself with any exit code or because
leadership was lost, until one of those four signals comes or the command cannot be executed. After a command that ended by
itself within 10s there is a pause, from 100ms up to 30s, during which other candidates may lead.

With --report-file the command tells its work to the election: it rewrites that file, which REGENT_REPORT_FILE names, with
a JSON object of at most 2 KiB such as {"progress":412,"tokensUsed":81000,"health":"ok"}. Counters are those of this
command. An invalid file is ignored, and the log says so once. With --progress-from-output each line on standard output is
progress; standard output is then a pipe, even if regent's own is a terminal.

The candidate is this host, unless --candidate names another, so that an order against it, or a cooldown, holds when it is
started again. Several on one host are incarnations of one candidate: one leads, and the others wait. Name them if orders
or ranks must tell them apart, and for --hand-over from one to another.

The election's policy decides which candidate leads next: see --priority, --capabilities and --load, and 'regent configure
--help'. With --await-followers N the command starts only once N members follow the new token ('regent join', or the SDK);
the lease is renewed meanwhile. If too few do within the duration of the lease, regent releases it, so that another
candidate may lead, and ends with exit code 120 or, with --restart, waits again.

With --hand-over the first SIGTERM or SIGINT does not stop the command yet. Regent names the best candidate that waits as
its successor, and the command goes on until that is ready, for half of --within at most; then it is stopped, and the
lease passes to the successor without a vacancy. If no candidate waits, the command is stopped at once, as without
--hand-over. Another signal skips the wait. A waiting 'regent run' is ready to take over at once or, with --on-succession,
once that command has ended with exit code 0; its environment has REGENT_ELECTION, REGENT_CANDIDATE_ID, REGENT_SERVER and,
of the present leader, REGENT_LEADER_ID and REGENT_LEADER_TOKEN. It is killed if the candidate is no longer the successor.

With --follow-command a shell command runs while another candidate leads. It is stopped, within the grace period, before
the main command starts, restarted for each leader, and not run while none leads. Its environment is that of
--on-succession, and REGENT_LEADER_ADDRESS: the string "address" of at most 256 bytes in the leader's --metadata, or
nothing. Its output goes to standard error. When it ends by itself, it is started again after a pause, from 100ms up to
30s.

With --leader-endpoint this process answers GET and HEAD at that address, on any path: 200 while the command runs and the
deadline of the lease has not passed, with a JSON object of its election, candidateId and fencingToken; otherwise 503 with
the reason, also while the command is paused. It is plain HTTP, and answers every caller that can reach the address.

With --inherit the file that REGENT_INHERITED_FILE names has the checkpoint of the last leader, as 'regent acquire
--inherit --output json' shows it; without a checkpoint the variable is not set. From then on no earlier leader can put
one. The command has no key, so it cannot put one of its own with 'regent checkpoint put'; a program that uses the SDK
can.

An election is read-only while fewer members of its electorate are present than the policy's quorum needs, for longer than
its grace time. The leader keeps its lease, but must not write. The log says so within about a second. With --on-read-only
stop regent then stops the command, releases the lease and ends with exit code 120 or, with --restart, waits again. With
pause it sends the command's process group SIGSTOP, and SIGCONT when the quorum is back; if the lease ends meanwhile, the
command is stopped in time as always. SIGINT, SIGTERM and SIGQUIT also let it continue.

The log says when the end of the term changes, as when an operator evicts the leader. A lease whose term has run out for
want of progress or of an approval is not released: it ends by itself, so that the election's policy takes effect. When an
operator begins a new epoch, the token in the command's environment is stale, and the command cannot learn another one:
regent stops it and starts it anew with the new token, under the same lease.

If regent is killed, the command dies with it; if regent is stopped, a second process, the guard, kills the command at the
deadline. If both are stopped, or get no CPU time, nothing kills it: then only the fencing token protects. The same holds
for processes that the command starts in a group of their own and with an environment of their own.

A process of another user cannot be stopped at the deadline, so the command gains no privileges: on Linux set-uid programs
such as sudo and su, and file capabilities, have no effect in it and in all that it starts. Elsewhere a set-uid command is
refused, and what a command starts cannot be checked. With --allow-new-privileges they work, and what they start may go on
after the lease has ended, while another candidate leads: then only the fencing token protects. It is better to run regent
itself as the other user, as in sudo regent run …: then it can stop every process that it starts.

Exit codes: the command's own, or 128+N if signal N killed it, and
  3  another candidate leads (with --no-wait)    6  the wait is over, and another candidate led
  5  the server could not be reached
  120  leadership was lost, its term has ended, or too few members followed, and the command was stopped or not started
  121  the lease could not be renewed in time, and the command was stopped
  122  no guard could be started, and the command was stopped or not started
  125  regent could not run the command
  126  the command cannot be executed            127  there is no such command
  128+N  signal N ended the wait`

// Exit codes of run about its command. Codes below 120 mean what they mean for every command.
const (
	exitLeadershipLost = 120
	exitNotRenewed     = 121
	exitNoGuard        = 122
	exitInDoubt        = 123
	exitNotRun         = 125
	exitNotExecutable  = 126
	exitNotFound       = 127
	exitSignal         = 128 // plus the signal's number
)

type runFlags struct {
	candidate client.Candidate
	worth     candidacyFlags
	wait      time.Duration
	noWait    bool
	grace     time.Duration
	restart   bool

	newPrivileges bool

	reportFile         string
	progressFromOutput bool
	awaitFollowers     int
	onReadOnly         readOnlyAction

	handsOver    bool
	within       time.Duration // of the hand-over
	onSuccession string        // a shell command

	leaderEndpoint string // an address
	followCommand  string // a shell command

	effect    leadership.EffectID // of regent once; "" for regent run
	ifInDoubt inDoubtAction
}

func (c *cli) runCommand() *cobra.Command {
	f := runFlags{wait: forever, grace: derivedGrace, within: leadership.DefaultWithin, onReadOnly: readOnlyContinue}
	cmd := &cobra.Command{
		Use:   "run ELECTION [flags] -- COMMAND...",
		Short: "Run a command only while leading",
		Long:  runHelp,
		Example: `  regent run reports -- ./make-reports --all
  regent run reports --lease 10s --restart -- sh -c 'exec worker --token "$REGENT_FENCING_TOKEN"'
  regent run reports --priority cksum --await-followers 2 -- ./coordinate
  regent run reports --hand-over --within 1m --on-succession './load-cache' -- ./serve-reports
  regent run db --metadata '{"address":"10.0.0.7:5432"}' --leader-endpoint :8081 \
    --follow-command 'exec replicate "$REGENT_LEADER_ADDRESS"' -- ./serve-db
  regent once nightly "$(date +%F)" -- ./backup # once a day, on whichever machine`,
		Args:              beforeCommand("run ELECTION", oneElection),
		ValidArgsFunction: c.completeElection,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !f.handsOver && cmd.Flags().Changed("within") {
				return usagef("--within is for --hand-over, which is not given")
			}
			return c.run(cmd.Context(), f, args)
		},
	}
	c.addTerm(cmd, &f)
	flags := cmd.Flags()
	flags.Var(&value[[]byte]{&f.candidate.Metadata, "", "JSON", parseMetadata}, "metadata", "a JSON object that describes the leader, such as its address")
	f.worth.add(c, cmd)
	flags.BoolVar(&f.restart, "restart", false, "campaign again when the command has ended")
	flags.StringVar(&f.reportFile, "report-file", "", "a file with a JSON report that the command rewrites; it is sent with renewals")
	flags.BoolVar(&f.progressFromOutput, "progress-from-output", false, "report each line that the command prints as progress")
	flags.Var(&value[int]{&f.awaitFollowers, "", "N", parseFollowers}, "await-followers", "start the command only once N members follow the new token (default: at once)")
	addChoice(c, cmd, &f.onReadOnly, readOnlyContinue, "on-read-only", "ACTION", "what to do with the command while the election has lost its quorum: stop, pause or continue",
		readOnlyStop, readOnlyPause, readOnlyContinue)
	flags.BoolVar(&f.handsOver, "hand-over", false, "on SIGTERM or SIGINT hand over to a candidate that waits, before the command is stopped")
	flags.Var(&value[time.Duration]{&f.within, leadership.DefaultWithin.String(), "DURATION", between(leadership.MinWithin, leadership.MaxWithin)}, "within", "with --hand-over: how long that may take, from 1s to 10m")
	flags.StringVar(&f.onSuccession, "on-succession", "", "a shell `COMMAND` that loads what the command needs, while another candidate leads that is to hand over to this one")
	flags.Var(&value[string]{&f.leaderEndpoint, "", "ADDR", parseLeaderEndpoint}, "leader-endpoint", "where load balancers and probes ask whether this process leads, such as 127.0.0.1:8081 (default: nowhere)")
	flags.StringVar(&f.followCommand, "follow-command", "", "a shell `COMMAND` that runs while another candidate leads")
	flags.BoolVar(&f.candidate.Inherit, "inherit", false, "give the command the checkpoint of the last leader, in the file REGENT_INHERITED_FILE")
	return cmd
}

// addTerm adds the flags that run and once have in common.
func (c *cli) addTerm(cmd *cobra.Command, f *runFlags) {
	flags := cmd.Flags()
	c.addCandidate(cmd, &f.candidate.ID, "the candidate's id", c.newCandidate)
	flags.Var(&value[time.Duration]{&f.candidate.LeaseDuration, "", "DURATION", within(leadership.LeaseBounds)}, "lease", "how long the lease lasts, "+leadership.LeaseBounds.String()+" (default: as the election is configured)")
	flags.Var(&value[time.Duration]{&f.wait, "forever", "DURATION", parseWait}, "wait", "how long to wait in line while another candidate leads, up to 24h, or forever")
	c.complete(cmd, "wait", "30s", "5m", "forever")
	flags.BoolVar(&f.noWait, "no-wait", false, "do not wait in line")
	flags.Var(&value[time.Duration]{&f.grace, "", "DURATION", between(0, leadership.MaxLeaseDuration/3)}, "grace", "the time between SIGTERM and SIGKILL, up to a third of the lease (default: a tenth of it, 5s at most)")
	flags.BoolVar(&f.newPrivileges, "allow-new-privileges", false, "let set-uid programs such as sudo work in the command; such a process may outlive the lease")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if f.noWait && cmd.Flags().Changed("wait") {
			return usagef("give --no-wait or --wait, not both")
		}
		return nil
	}
	c.addRemote(cmd)
}

type readOnlyAction string

const (
	readOnlyStop     readOnlyAction = "stop"
	readOnlyPause    readOnlyAction = "pause"
	readOnlyContinue readOnlyAction = "continue"
)

func parseFollowers(text string) (int, error) {
	n, err := parseCount(text)
	if err == nil && n > leadership.MaxMembers {
		err = fmt.Errorf("must be %d at most", leadership.MaxMembers)
	}
	return n, err
}

// beforeCommand passes the one argument before the command to check.
func beforeCommand(use string, check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		dash := cmd.ArgsLenAtDash()
		if dash < 0 || dash == len(args) {
			return fmt.Errorf("%s needs a command, after --, as in: regent %s -- COMMAND", cmd.Name(), use)
		}
		return check(cmd, args[:dash])
	}
}

const (
	// derivedGrace stands for a grace period derived from the lease.
	derivedGrace time.Duration = -1
	maxGrace                   = 5 * time.Second // for the derived grace period
)

// validate returns an error if the flags contradict each other.
func (f runFlags) validate() error {
	if lease := f.candidate.LeaseDuration; lease > 0 && f.grace > lease/3 {
		return usagef("--grace must be at most a third of the lease, which is %v of %v: the rest is the time to renew", lease/3, lease)
	}
	return nil
}

// graceOf returns the time between SIGTERM and SIGKILL under a lease that was just granted. It is
// shorter than asked for if the grant took so long that little of the lease is left.
func (f runFlags) graceOf(l *client.Lease) (time.Duration, error) {
	grace := f.grace
	switch {
	case grace == derivedGrace:
		grace = min(l.Duration()/10, maxGrace)
	case grace > l.Duration()/3:
		return 0, usagef("--grace must be at most a third of the lease, which is %v of %v, and is %v; ask for a longer lease with --lease", l.Duration()/3, l.Duration(), grace)
	}
	return min(grace, l.Remaining()/2), nil
}

// exitStatus is the exit code of a run, with an error if the log does not say enough.
type exitStatus struct {
	code int
	error
}

func (e exitStatus) Unwrap() error { return e.error }

func (e exitStatus) Error() string {
	if e.error == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.error.Error()
}

// run runs the command args[1:] while leading the election args[0].
func (c *cli) run(ctx context.Context, f runFlags, args []string) error {
	if err := f.validate(); err != nil {
		return err
	}
	f.worth.addTo(&f.candidate)
	if f.handsOver {
		f.candidate.HandOverWithin = f.within
	}
	r, err := c.newRunner(f, leadership.Election(args[0]), args[1:])
	if err != nil {
		return err
	}
	closeEndpoint, err := r.openEndpoint()
	if err != nil {
		return err
	}
	defer closeEndpoint()
	defer r.listen()()
	defer r.logOut.drain()
	defer r.passOutput()
	return r.run(ctx)
}
