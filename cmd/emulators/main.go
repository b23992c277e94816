// Command emulators starts the public Google Cloud emulators around a command:
//
//	go run ./cmd/emulators -- go test ./...
//
// The command finds them in FIRESTORE_EMULATOR_HOST, SPANNER_EMULATOR_HOST and
// PUBSUB_EMULATOR_HOST, and gets the signals that this process gets. Its exit status becomes this
// process's (go run itself turns every other than 0 into 1). At the end the emulators are stopped,
// and the tests that were skipped because of a missing emulator are listed.
//
// Without a command the variables are printed for a shell to read, and the emulators run until
// SIGINT or SIGTERM:
//
//	go run ./cmd/emulators --only firestore
//
// Package emulators describes where the emulators come from, and how to choose. If there are none,
// the command runs without them, after a message on standard error; without a command, or with
// REGENT_REQUIRE_EMULATORS=1, that is an error.
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
	"regent/emulators/need"
)

func main() {
	os.Exit(exitStatus(run(context.Background(), os.Args[1:])))
}

// exitStatus returns the command's own status, if the command ran; for a command killed by a signal
// it is 128 plus the signal, as in a shell.
func exitStatus(err error) int {
	ended, ran := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case ran:
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

// run starts the emulators, runs the command or waits, and stops the emulators in any case.
func run(ctx context.Context, args []string) (err error) {
	opts, err := parse(args)
	if err != nil {
		return err
	}
	// Before anything is started, so that no signal is lost.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, passedOn...)
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
	log     io.Writer // output of the emulators; nil for nowhere
	command []string
}

func parse(args []string) (options, error) {
	flags := flag.NewFlagSet("emulators", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	only := flags.String("only", "", "the `kinds` to start, of firestore,spanner,pubsub (default all)")
	verbose := flags.Bool("verbose", false, "print the emulators' output to standard error")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Println("usage: emulators [flags] [-- command [argument ...]]")
		flags.SetOutput(os.Stdout)
		flags.PrintDefaults()
		return options{}, err
	} else if err != nil {
		return options{}, fmt.Errorf("%w (see emulators --help)", err)
	}
	opts := options{which: emulators.ParseKinds(*only), command: flags.Args()}
	if *verbose {
		opts.log = os.Stderr
	}
	return opts, nil
}

// start starts the available emulators; SIGINT and SIGTERM end it early. A missing emulator is an
// error, unless there is a command that reports what it skips.
func start(ctx context.Context, opts options) (*emulators.Set, error) {
	ctx, done := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer done()
	set, err := emulators.Start(ctx, emulators.Config{
		Which:    opts.which,
		Optional: len(opts.command) > 0 && !need.All(),
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

// stay prints the variables and waits for a signal.
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
