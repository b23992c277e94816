// Command prove searches for bugs of Regent in every way that there is, and reports in figures how
// far it has searched:
//
//	states       all states of a model of the protocol                  (package belief)
//	crash        the local store, as crashes and bad disks leave it     (package crash)
//	mutants      planted bugs, which the tests must catch               (package mutants)
//	simulation   years of elections, from seeds                        (package simulation)
//	file, firestore, spanner   real processes, with faults              (package faults)
//	tests        the long forms of the tests of real processes    (packages test, test/faults)
//	lock, command   some of these for much longer                       (night set only)
//
// A quarter of the quick set (-share 4), as make prove asks for, takes about a quarter of an hour
// and at most 4 GiB of memory. The night set (-night) goes on until its figures are reached. It may
// be stopped at any time: the folder has a report of what was done until then, and what each
// violation has left behind. Another -seed searches elsewhere. The exit code is 1 if a bug was
// found or less was searched than is wanted, and 2 for flags that make no sense.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"regent/test/crash"
)

func main() {
	if code, played := crash.Main(os.Args); played {
		os.Exit(code)
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "prove:", err)
		if _, wrong := errors.AsType[usage](err); wrong {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

// memoryLimit is the soft memory limit of this process, in bytes. Compilers, servers and emulators
// that it starts take as much again and more.
const memoryLimit = 5 << 28

// usage is the error for flags that make no sense.
type usage string

func (u usage) Error() string { return string(u) + "; see -help" }

// config has the flags.
type config struct {
	night bool
	dir   string
	only  []string
	share int
	draw  int
	seed  uint64
	page  string
}

func parse(args []string) (c config, err error) {
	flags := flag.NewFlagSet("prove", flag.ContinueOnError)
	flags.BoolVar(&c.night, "night", false, "search for a night")
	flags.StringVar(&c.dir, "dir", ".build/prove", "the folder of the report and of what was found")
	only := flags.String("only", "", "the parts to do, separated by commas; all if empty")
	flags.IntVar(&c.share, "share", 1, "do only one in so many steps of the quick set")
	flags.IntVar(&c.draw, "draw", 0, "which of these shares of the planted bugs and tests; the next number means the next ones")
	flags.Uint64Var(&c.seed, "seed", 1, "the first seed of each part")
	flags.StringVar(&c.page, "page", "", "a page of Markdown that gets the report of this run, if nothing was found, in place of its last one")
	flags.SetOutput(io.Discard) // run's error says it once
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(os.Stdout)
		flags.Usage()
		return c, err
	} else if err != nil {
		return c, usage(err.Error())
	}
	if *only != "" {
		c.only = strings.Split(*only, ",")
	}
	if flags.NArg() > 0 {
		return c, usage(fmt.Sprintf("%q is no flag", flags.Arg(0)))
	}
	return c, c.validate()
}

func (c config) validate() error {
	switch {
	case c.share < 1, c.seed < 1, c.draw < 0:
		return usage("-share and -seed are 1 or more, and -draw is 0 or more")
	case c.night && c.share > 1:
		return usage("-share is for the quick set; stop a night whenever you like")
	case c.page != "" && len(c.only) > 0:
		return usage("-page is for a report of all parts, without -only")
	}
	return nil
}

func run(args []string) error {
	c, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // so that a second signal ends the process at once
	// The simulation makes much garbage and keeps little, so garbage may grow to many times the
	// live memory; not where a checker keeps a gigabyte for some seconds, which memoryLimit
	// prevents.
	debug.SetGCPercent(800)
	debug.SetMemoryLimit(memoryLimit)
	began := time.Now()
	faultRuns := newFaultRuns(c.dir)
	all, err := parts(c, faultRuns)
	if err != nil {
		return err
	}
	p, err := newProof(c, all)
	if err != nil {
		return err
	}
	err = p.run(ctx)
	fmt.Print(p.report())
	if err == nil && c.page != "" {
		err = p.publish(c.page)
	}
	if err == nil {
		fmt.Printf("ok  \tregent/test/prove\t%.3fs\n", time.Since(began).Seconds())
	}
	return err
}
