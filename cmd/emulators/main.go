// Command emulators starts the public Google Cloud emulators around a command:
//
//	go run ./cmd/emulators -- go test ./...
//
// The command finds them in FIRESTORE_EMULATOR_HOST, SPANNER_EMULATOR_HOST and
// PUBSUB_EMULATOR_HOST, gets the signals that this process gets, and its exit status
// becomes that of this process (go run itself makes a 1 of every other than 0). At
// the end the emulators are stopped, and the tests that were skipped for want of one
// are listed.
//
// Without a command the variables are printed for a shell to read, and the
// emulators stay until SIGINT or SIGTERM:
//
//	go run ./cmd/emulators --only firestore
//
// Where the emulators come from, and how to choose, is told in package emulators.
// If there are none to be had, a command is run without, after a word on standard
// error; without a command, or with REGENT_REQUIRE_EMULATORS=1, that is an error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"regent/emulators"
)

func main() {
	os.Exit(exitStatus(run(context.Background(), os.Args[1:])))
}

// exitStatus is the command's own, if the command ran; a command that a signal ended
// counts as a shell counts it, 128 and the signal.
func exitStatus(err error) int {
	var ended *exec.ExitError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &ended):
		if err != error(ended) {
			fmt.Fprintln(os.Stderr, "emulators:", err)
		}
		if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal())
		}
		return ended.ExitCode()
	}
	fmt.Fprintln(os.Stderr, "emulators:", err)
	return 1
}

// run starts the emulators, and the command or the wait, and stops the emulators
// whatever happens in between.
func run(ctx context.Context, args []string) (err error) {
	opts, err := parse(args)
	if err != nil {
		return err
	}
	// Before anything is started, so that no signal finds this process unprepared.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, passedOn()...)
	defer signal.Stop(signals)

	set, err := start(ctx, opts)
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := set.Stop(context.WithoutCancel(ctx)); stopErr != nil {
			err = errors.Join(err, stopErr)
		}
	}()
	if len(opts.command) == 0 {
		return stay(ctx, set, signals)
	}
	return runCommand(opts.command, set, signals)
}

type options struct {
	which   []emulators.Kind
	log     io.Writer // what the emulators print; nil: nowhere
	command []string
}

func parse(args []string) (options, error) {
	flags := flag.NewFlagSet("emulators", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	only := flags.String("only", "", "the `kinds` to start, of firestore,spanner,pubsub (default all)")
	verbose := flags.Bool("verbose", false, "pass on what the emulators print, to standard error")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Println("usage: emulators [flags] [-- command [argument ...]]")
		flags.SetOutput(os.Stdout)
		flags.PrintDefaults()
		return options{}, err
	} else if err != nil {
		return options{}, fmt.Errorf("%w (see emulators --help)", err)
	}
	which, err := emulators.ParseKinds(*only)
	opts := options{which: which, command: flags.Args()}
	if *verbose {
		opts.log = os.Stderr
	}
	return opts, err
}

// start starts what is to be had; SIGINT and SIGTERM end it early. What is missing is
// an error, unless a command can say for itself what it did without.
func start(ctx context.Context, opts options) (*emulators.Set, error) {
	ctx, done := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer done()
	set, err := emulators.Start(ctx, emulators.Config{
		Which:    opts.which,
		Optional: len(opts.command) > 0 && !emulators.Required(),
		Log:      opts.log,
	})
	if err != nil {
		return nil, err
	}
	for _, missing := range set.Missing() {
		fmt.Fprintln(os.Stderr, "emulators: RUNNING WITHOUT", missing)
	}
	return set, nil
}

// stay prints the variables and waits for the signal to end.
func stay(ctx context.Context, set *emulators.Set, signals <-chan os.Signal) error {
	for _, line := range set.Env() {
		fmt.Println("export", line)
	}
	fmt.Fprintln(os.Stderr, "emulators: running until Ctrl-C")
	select {
	case <-signals:
	case <-ctx.Done():
	}
	return nil
}
