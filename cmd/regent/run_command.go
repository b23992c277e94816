package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"regent/cmd/regent/internal/leash"
	"regent/leadership"
	"regent/leadership/boottime"
	"regent/leadership/client"
)

type runner struct {
	*cli
	runFlags
	election leadership.Election
	path     string // of the command
	args     []string
	files    [3]*os.File
	server   *client.Client
	signals  chan os.Signal
	log      *slog.Logger
	logOut   *asyncWriter  // destination of log
	reporter *reporter     // nil if nothing is reported
	noticed  chan struct{} // capacity 1: something in the lease has changed
	endpoint leaderEndpoint
}

func (c *cli) newRunner(f runFlags, e leadership.Election, args []string) (r *runner, err error) {
	r = &runner{cli: c, runFlags: f, election: e, args: args, signals: make(chan os.Signal, 16), logOut: newAsyncWriter(c.err), noticed: make(chan struct{}, 1), endpoint: leaderEndpoint{election: e}}
	r.log = newLogTo(r.logOut, isTerminal(c.err), "")
	config := client.Config{
		HTTP:      &http.Client{Timeout: c.timeout + leadership.MaxWait},
		Candidate: f.candidate,
		Log:       r.log,
		OnNotice:  r.notice,
	}
	if f.onSuccession != "" {
		config.OnSuccession = r.prepare
	}
	if r.server, err = c.connectWith(config); err != nil {
		return nil, err
	}
	if r.path, err = lookUp(args[0]); err != nil {
		return nil, err
	}
	for i, stream := range []any{c.in, c.out.(output).w, c.err} {
		f, ok := stream.(*os.File)
		if !ok {
			return nil, exitStatus{exitNotRun, errors.New("standard input, output and error must be files")}
		}
		r.files[i] = f
	}
	return r, r.prepareReports()
}

func (r *runner) prepareReports() (err error) {
	if r.reportFile == "" && !r.progressFromOutput {
		return nil
	}
	r.reporter = &reporter{log: r.log}
	if r.reportFile != "" {
		if r.reporter.path, err = filepath.Abs(r.reportFile); err != nil {
			return exitStatus{exitNotRun, fmt.Errorf("--report-file: %w", err)}
		}
	}
	if r.progressFromOutput {
		if r.reporter.lines, r.files[1], err = newLineCounter(r.files[1]); err != nil {
			return exitStatus{exitNotRun, fmt.Errorf("--progress-from-output: %w", err)}
		}
	}
	return nil
}

// passOutput waits until all output of the commands was passed on.
func (r *runner) passOutput() {
	if r.progressFromOutput {
		r.reporter.lines.end(r.files[1])
	}
}

// notice wakes attend, which watches the lease.
func (r *runner) notice(client.Notice) {
	select {
	case r.noticed <- struct{}{}:
	default:
	}
}

// lookUp finds the command as a shell does, before anything waits for it.
func lookUp(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "", exitStatus{exitNotFound, fmt.Errorf("there is no command %q", name)}
	}
	return "", exitStatus{exitNotExecutable, fmt.Errorf("%q cannot be executed: %w", name, errors.Unwrap(err))}
}

// listen catches the signals to be passed on, except those that this process was started to ignore,
// as under nohup.
func (r *runner) listen() (stop func()) {
	heard := slices.DeleteFunc(slices.Clone(leash.Signals), signal.Ignored)
	signal.Notify(r.signals, heard...)
	return func() { signal.Stop(r.signals) }
}

func (r *runner) run(ctx context.Context) error {
	stop := r.follow(ctx)
	defer func() { stop() }()
	for pauses := 0; ; {
		lease, err := r.campaign(ctx)
		if err != nil {
			return err
		}
		stop()
		begun := boottime.Now()
		end, err := r.awaitedTerm(ctx, lease)
		ending := lease.EndsBy()
		if errors.Is(end.Err, leash.ErrDeadline) && ending.MustRunOut() {
			lease.LetEnd()
		} else {
			end.Err = cmp.Or(end.Err, err) // why the command did not start
			r.resign(lease, end)
		}
		if err != nil || !r.again(end) {
			return cmp.Or(err, r.outcome(end, ending))
		}
		stop = r.follow(ctx)
		if end.Err != nil && !errors.Is(end.Err, leash.ErrGuard) && !errors.Is(end.Err, client.ErrNotFollowed) || boottime.Now()-begun >= longRun {
			pauses = 0
			continue
		}
		if err := r.pause(ctx, pauses); err != nil {
			return err
		}
		pauses++
	}
}

// campaign blocks until the candidate leads or a signal ends the wait.
func (r *runner) campaign(ctx context.Context) (*client.Lease, error) {
	ctx, heard := r.untilSignal(ctx)
	lease, err := r.ask(ctx)
	if signal := heard(); signal != nil {
		if err == nil { // lease and signal arrived together
			r.resign(lease, leash.End{Passed: []os.Signal{signal}})
		}
		r.log.Info("the wait was interrupted", "election", r.election, "signal", signal.String())
		return nil, exitStatus{code: exitSignal + int(signal.(syscall.Signal))}
	}
	return lease, err
}

// ask campaigns with the candidate and the wait of the flags.
func (r *runner) ask(ctx context.Context) (*client.Lease, error) {
	if r.noWait || r.wait == 0 {
		ctx, cancel := context.WithTimeout(ctx, r.timeout)
		defer cancel()
		return r.server.TryAcquire(ctx, r.election)
	}
	if r.wait < forever {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.wait, errWaitOver)
		defer cancel()
	}
	r.log.Info("waiting for leadership", "election", r.election)
	lease, err := r.server.Campaign(ctx, r.election)
	return lease, r.waited(ctx, err)
}

var errWaitOver = errors.New("the wait is over")

// waited translates the error of a campaign.
func (r *runner) waited(ctx context.Context, err error) error {
	over := err != nil && errors.Is(context.Cause(ctx), errWaitOver)
	switch {
	case over && unreachable(err):
		return fmt.Errorf("the wait of %v for leadership of election %q is over: %w", r.wait, r.election, err)
	case over:
		return timedOut{fmt.Errorf("the wait of %v for leadership of election %q is over", r.wait, r.election)}
	}
	return err
}

// ends reports whether a signal asks regent to end.
func ends(s os.Signal) bool {
	return slices.Contains([]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}, s)
}

// untilSignal returns a context that is cancelled by a signal that asks regent to end. heard
// returns that signal, or nil, and must be called before anything else reads r.signals.
func (r *runner) untilSignal(ctx context.Context) (_ context.Context, heard func() os.Signal) {
	ctx, cancel := context.WithCancel(ctx)
	listened := make(chan os.Signal, 1)
	go func() {
		defer close(listened)
		for {
			select {
			case s := <-r.signals:
				if ends(s) {
					listened <- s
					cancel()
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() os.Signal {
		cancel()
		return <-listened
	}
}

// term runs the command under a lease: once, and anew in each new epoch.
func (r *runner) term(lease *client.Lease) (end leash.End, err error) {
	if r.reporter != nil {
		r.reporter.granted()
	}
	for {
		switch run, err := r.begin(lease); {
		case err != nil && !lease.Valid():
			return leash.End{Err: context.Cause(lease.Context())}, nil
		case !run:
			return leash.End{}, err
		}
		end, err = r.lead(lease)
		stopped := slices.ContainsFunc(end.Passed, ends)
		switch {
		case r.effect == "" || err != nil || end.Err != nil:
		case end.Code == exitDone:
			err = r.finish(lease, stopped)
		default:
			r.log.Warn("the command has failed, so the effect stays in doubt", "election", r.election, "effect", r.effect)
		}
		if !errors.Is(end.Err, errNewEpoch) || stopped {
			return end, err
		}
	}
}

// awaitedTerm is term, once as many members follow the lease as the flags ask for.
func (r *runner) awaitedTerm(ctx context.Context, lease *client.Lease) (end leash.End, err error) {
	if r.awaitFollowers == 0 {
		return r.term(lease)
	}
	r.log.Info("waiting for members to follow the token", "election", r.election, "token", lease.Token(), "members", r.awaitFollowers)
	ctx, heard := r.untilSignal(ctx)
	limited, cancel := context.WithTimeoutCause(ctx, lease.Duration(), client.ErrNotFollowed)
	defer cancel()
	err = lease.AwaitFollowers(limited, r.awaitFollowers)
	signal := heard()
	switch {
	case signal != nil:
		return end, exitStatus{code: exitSignal + int(signal.(syscall.Signal))}
	case err == nil:
		return r.term(lease)
	case errors.Is(err, client.ErrNotFollowed), !lease.Valid():
		r.log.Warn("the command was not started", "election", r.election, "reason", err)
		return leash.End{Err: err}, nil
	}
	return end, err
}

// errNewEpoch stops a command whose token is stale. It has the token in its environment and cannot
// learn another one.
var errNewEpoch = errors.New("a new epoch has begun: the command starts anew under the new token")

// errReadOnly stops a command whose election has lost its quorum.
var errReadOnly = errors.New("the election is read-only")

// attend sends the command's reports, and stops the command if a new epoch begins. It stops or
// pauses it while the election is read-only, if the flags ask for that.
func (r *runner) attend(lease *client.Lease, token leadership.Token, stop chan<- error, pause chan<- bool, over <-chan struct{}) {
	every := min(lease.Duration()/10, time.Second)
	for paused := false; ; {
		if r.reporter != nil {
			r.reporter.step(lease)
		}
		readOnly := lease.ReadOnly()
		switch {
		case lease.Token() != token:
			stop <- errNewEpoch
			return
		case readOnly && r.onReadOnly == readOnlyStop:
			stop <- errReadOnly
			return
		case readOnly != paused && r.onReadOnly == readOnlyPause:
			select {
			case pause <- readOnly:
				paused = readOnly
				r.endpoint.paused.Store(readOnly)
			case <-over:
				return
			}
		}
		var later <-chan time.Time
		if r.reporter != nil {
			later = time.After(every)
		}
		select {
		case <-later:
		case <-r.noticed:
		case <-over:
			return
		}
	}
}

func (r *runner) lead(lease *client.Lease) (leash.End, error) {
	grace, err := r.graceOf(lease)
	if err != nil {
		return leash.End{}, err
	}
	inherited, remove, err := inheritedFile(lease)
	if err != nil {
		return leash.End{}, exitStatus{exitNotRun, fmt.Errorf("the inherited checkpoint could not be written: %w", err)}
	}
	defer remove()
	token := lease.Token()
	log := r.log.With("election", lease.Election(), "token", token)
	if r.reporter != nil {
		r.reporter.begin()
	}
	stop, pause, over := make(chan error, 1), make(chan bool), make(chan struct{})
	var attending sync.WaitGroup
	attending.Go(func() { r.attend(lease, token, stop, pause, over) })
	signals, left := r.signals, []os.Signal(nil)
	if r.handsOver {
		signals = make(chan os.Signal, cap(r.signals))
		attending.Go(func() { left = r.relay(lease, signals, over) })
	}
	r.endpoint.paused.Store(false)
	r.endpoint.lease.Store(lease)
	end, err := leash.Run(lease.Context(), leash.Config{
		Path: r.path, Args: r.args, Files: r.files,
		Env: append(r.commandEnv(lease, token), inherited...), DeadlineVariable: "REGENT_DEADLINE_FILE", NewPrivileges: r.newPrivileges,
		Deadline: lease.Deadline, Moved: lease.Extended(), Grace: grace, Stop: stop, Pause: pause,
		Signals: signals, Log: log,
	})
	close(over)
	attending.Wait()
	end.Passed = append(end.Passed, left...)
	if err != nil {
		return end, exitStatus{exitNotRun, fmt.Errorf("the command could not be run: %w", err)}
	}
	log.Info("the command has ended", "code", end.Code)
	return end, nil
}

// commandEnv returns the command's environment: regent's own plus the facts of the lease, without
// secrets and without variables of regent that the command would take for its own.
func (r *runner) commandEnv(l *client.Lease, token leadership.Token) []string {
	ours := []string{
		"REGENT_ELECTION=" + string(l.Election()),
		fmt.Sprintf("REGENT_FENCING_TOKEN=%d", token),
		"REGENT_CANDIDATE_ID=" + string(l.CandidateID()),
		"REGENT_SERVER=" + r.cli.server,
	}
	if l.Seat() > 0 {
		ours = append(ours, "REGENT_SEAT_OF="+string(r.election), fmt.Sprintf("REGENT_SEAT=%d", l.Seat()))
	}
	if r.reporter != nil && r.reporter.path != "" {
		ours = append(ours, "REGENT_REPORT_FILE="+r.reporter.path)
	}
	if r.effect != "" {
		ours = append(ours, "REGENT_EFFECT="+string(r.effect))
	}
	return append(r.publicEnv(), ours...)
}

// publicEnv returns regent's environment without secrets, and without the variables that it sets
// for commands.
func (r *runner) publicEnv() []string {
	replaced := []string{
		"REGENT_ELECTION", "REGENT_FENCING_TOKEN", "REGENT_CANDIDATE_ID", "REGENT_SERVER", "REGENT_DEADLINE_FILE", "REGENT_REPORT_FILE",
		"REGENT_INHERITED_FILE", "REGENT_EFFECT", "REGENT_SEAT", "REGENT_SEAT_OF", "REGENT_LEADER_ID", "REGENT_LEADER_TOKEN", "REGENT_LEADER_ADDRESS", followMark, "REGENT_KEY", "REGENT_TOKEN",
	}
	return slices.DeleteFunc(slices.Clone(r.environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(replaced, name)
	})
}

// releaseLimit is how long a release may take beyond the end of the lease.
const releaseLimit = time.Second

// resign releases the lease, with the outcome of the command, which must be gone.
func (r *runner) resign(lease *client.Lease, end leash.End) {
	limit := max(min(lease.Deadline()-boottime.Now(), r.timeout), 0) + releaseLimit
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	outcome, note := leadership.OutcomeStopped, ""
	switch {
	case end.Err != nil || byKeyboard(end) || slices.ContainsFunc(end.Passed, ends):
	case end.Code == exitDone:
		outcome = leadership.OutcomeDone
	default:
		outcome, note = leadership.OutcomeFailed, fmt.Sprintf("exit status %d", end.Code)
	}
	if err := lease.Finish(ctx, outcome, note); err != nil {
		r.log.Warn("the lease could not be released; it will expire", "election", r.election, "reason", err)
	}
}

const (
	longRun         = 10 * time.Second
	minRestartPause = 100 * time.Millisecond
	maxRestartPause = 30 * time.Second
)

// byKeyboard reports whether a person has ended the command.
func byKeyboard(end leash.End) bool {
	return end.Terminal && (end.Signal == syscall.SIGINT || end.Signal == syscall.SIGQUIT)
}

// again reports whether to run the command once more.
func (r *runner) again(end leash.End) bool {
	unusable := end.Err == nil && (end.Code == exitNotExecutable || end.Code == exitNotFound)
	return r.restart && !byKeyboard(end) && !unusable && !slices.ContainsFunc(end.Passed, ends)
}

// pause waits before the next campaign, unless a signal comes.
func (r *runner) pause(ctx context.Context, pauses int) error {
	ctx, heard := r.untilSignal(ctx)
	sleep(ctx, backoff(pauses, minRestartPause, maxRestartPause))
	if signal := heard(); signal != nil {
		return exitStatus{code: exitSignal + int(signal.(syscall.Signal))}
	}
	return nil
}

// outcome returns the command's exit code, or the reason why it was stopped.
func (r *runner) outcome(end leash.End, ending client.Ending) error {
	switch {
	case end.Err == nil && end.Code == exitDone:
		return nil
	case end.Err == nil, errors.Is(end.Err, errNewEpoch):
		return exitStatus{code: end.Code}
	case errors.Is(end.Err, leash.ErrGuard):
		return exitStatus{exitNoGuard, fmt.Errorf("the command was stopped or not started: %w", end.Err)}
	case errors.Is(end.Err, client.ErrNotFollowed):
		return exitStatus{exitLeadershipLost, fmt.Errorf("the command was not started: too few members followed the fencing token of election %q within the duration of its lease; --await-followers asks for %d", r.election, r.awaitFollowers)}
	case errors.Is(end.Err, errReadOnly):
		return exitStatus{exitLeadershipLost, fmt.Errorf("election %q has lost its quorum, and the command was stopped: --on-read-only is %s", r.election, readOnlyStop)}
	case errors.Is(end.Err, client.ErrDeposed):
		return exitStatus{exitLeadershipLost, fmt.Errorf("the policy of election %q has ended the term, and the command was stopped: %s", r.election, detail(end.Err))}
	case errors.Is(end.Err, client.ErrLost):
		return exitStatus{exitLeadershipLost, fmt.Errorf("leadership of election %q was lost, and the command was stopped", r.election)}
	}
	if ending.Near {
		why := &client.TermError{Because: ending.Because}
		return exitStatus{exitLeadershipLost, fmt.Errorf("leadership of election %q has ended, and the command was stopped: %w", r.election, why)}
	}
	return exitStatus{exitNotRenewed, fmt.Errorf("the lease of election %q could not be renewed in time, and the command was stopped", r.election)}
}

func detail(err error) string {
	if refusal, ok := errors.AsType[*leadership.Error](err); ok {
		return refusal.Detail
	}
	return err.Error()
}
