// Command prove looks for what is wrong with Regent, in every way that there is, and says in figures how far it has looked:
//
//	states       all states of a model of the protocol, searched to their end         (package belief)
//	simulation   years of elections, from seeds                                      (package simulation)
//	crash        images of the embedded store's file, as crashes and bad disks leave  (package crash)
//	bolt, firestore, spanner   real processes, broken in every way that can be        (package faults)
//	lock, command, announcing  tests of the project that are worth a night            (package test; in the night set alone)
//	mutants      bugs that are planted, to see that all of this would find them       (package mutants)
//
// The quick set, without flags, takes some ten minutes. The night set (-night) goes on until its figures are reached, is stopped whenever one likes
// and goes on from there when it is begun anew; its folder has a report all the time, and whatever a violation has left behind. The exit code is 1 if
// anything was found.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
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
		os.Exit(1)
	}
}

// config is what the flags say.
type config struct {
	night    bool
	dir      string
	only     []string
	share    int
	seed     uint64
	together int
}

func parse(args []string) (c config, err error) {
	flags := flag.NewFlagSet("prove", flag.ContinueOnError)
	flags.BoolVar(&c.night, "night", false, "look for as long as a night, and go on where an earlier one has stopped")
	flags.StringVar(&c.dir, "dir", ".build/prove", "where the report is, and what was found")
	only := flags.String("only", "", "the parts to do, with commas between them; all if it is empty")
	flags.IntVar(&c.share, "share", 1, "do only one in so many of the steps of the quick set")
	flags.Uint64Var(&c.seed, "seed", 1, "the first seed of each part")
	flags.IntVar(&c.together, "together", 3, "how many fault runs are played side by side")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("%q is no flag; see -help", flags.Arg(0))
	}
	if c.share < 1 || c.together < 1 {
		return c, errors.New("-share and -together are 1 or more")
	}
	if *only != "" {
		c.only = strings.Split(*only, ",")
	}
	return c, nil
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
	debug.SetGCPercent(800) // the simulation makes much garbage, and little else
	began := time.Now()
	p, err := newProof(c)
	if err != nil {
		return err
	}
	err = p.run(ctx)
	fmt.Print(p.report())
	if err == nil {
		fmt.Printf("ok  \tregent/test/prove\t%.3fs\n", time.Since(began).Seconds())
	}
	return err
}
