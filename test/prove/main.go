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
// Each part is some tests with flags, which go test runs. A quarter of the quick set (-share 4), as
// make prove asks for, takes about a quarter of an hour and at most 4 GiB of memory. The night set
// (-night) goes on for hours. It may be stopped at any time: the folder has a report of what was
// done until then, the output of each part, and what each violation has left behind. Another -seed
// searches elsewhere. The exit code is 1 if a bug was found or less was searched than is wanted,
// and 2 for flags that make no sense.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// config has the flags.
type config struct {
	night bool
	dir   string
	only  string
	share int
	draw  int
	seed  uint64
	page  string
}

func main() {
	var c config
	flag.BoolVar(&c.night, "night", false, "search for a night")
	flag.StringVar(&c.dir, "dir", ".build/prove", "the folder of the report and of what was found")
	flag.StringVar(&c.only, "only", "", "the parts to do, separated by commas; all if empty")
	flag.IntVar(&c.share, "share", 1, "do only one in so many steps of the quick set")
	flag.IntVar(&c.draw, "draw", 0, "which of these shares of the models, planted bugs and tests; the next number means the next ones")
	flag.Uint64Var(&c.seed, "seed", 1, "the first seed of each part")
	flag.StringVar(&c.page, "page", "", "a page of Markdown that gets the report of this run, if nothing was found, in place of its last one")
	flag.Parse()
	chosen, err := choose(c)
	if err != nil {
		fmt.Fprintf(os.Stderr, "prove: %v; see -help\n", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second signal ends the process at once
	if err := run(ctx, c, chosen); err != nil {
		fmt.Fprintln(os.Stderr, "prove:", err)
		os.Exit(1)
	}
}

// choose returns the parts that the flags ask for.
func choose(c config) (chosen []*part, err error) {
	switch {
	case flag.NArg() > 0:
		return nil, fmt.Errorf("%q is no flag", flag.Arg(0))
	case c.share < 1, c.seed < 1, c.draw < 0:
		return nil, fmt.Errorf("-share and -seed are 1 or more, and -draw is 0 or more")
	case c.night && c.share > 1:
		return nil, fmt.Errorf("-share is for the quick set; stop a night whenever you like")
	case c.page != "" && c.only != "":
		return nil, fmt.Errorf("-page is for a report of all parts, without -only")
	}
	all := parts(c)
	if c.only == "" {
		return all, nil
	}
	for name := range strings.SplitSeq(c.only, ",") {
		before := len(chosen)
		for _, p := range all {
			if p.name == name {
				chosen = append(chosen, p)
			}
		}
		if len(chosen) == before {
			return nil, fmt.Errorf("there is no part %q, or it is in the night set alone", name)
		}
	}
	return chosen, nil
}

// run does the parts, writes the report, and returns an error if not all have passed.
func run(ctx context.Context, c config, chosen []*part) error {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	r := report{config: c, began: time.Now(), parts: chosen}
	r.do(ctx)
	text := r.String()
	fmt.Print(text)
	if err := r.err(ctx); err != nil {
		return err
	}
	if c.page != "" {
		if err := publish(c.page, text); err != nil {
			return err
		}
	}
	fmt.Printf("ok  \tregent/test/prove\t%.3fs\n", time.Since(r.began).Seconds())
	return nil
}

// What a report on a page stands between.
const pageBegins, pageEnds = "<!-- report -->\n", "<!-- end of the report -->\n"

// publish replaces the report on a page.
func publish(page, report string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), pageBegins)
	_, after, ends := strings.Cut(rest, pageEnds)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for a report, from %q to %q", page, strings.TrimSpace(pageBegins), strings.TrimSpace(pageEnds))
	}
	return os.WriteFile(page, []byte(before+pageBegins+report+pageEnds+after), 0o644)
}

// file is the path of a file in the folder of the report.
func (c config) file(name string) string { return filepath.Join(c.dir, name) }
