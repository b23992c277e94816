// Command computed tries computed mutations of a package: each condition negated, each bound moved
// by one, each call and each assignment left out, one at a time.
//
//	go run ./test/mutants/computed [-by FOLDER,…] [-only TEXT] [-share N] [-again FILE] FOLDER
//
// It prints the mutations that no short test notices, and the share of those that are. The tests of
// the package are asked, and then those of the folders of -by. It exits with 1 if fewer than 95 of
// 100 are noticed, or if another one is not that test/mutants/equivalents.txt does not explain.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"

	"regent/test/mutants"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "computed:", err)
		os.Exit(1)
	}
}

func run() error {
	by := flag.String("by", "", "folders whose tests are asked after those of the package, separated by commas")
	only := flag.String("only", "", "try only mutations that have this text: a file, a function, a change")
	share := flag.Int("share", 1, "try one mutation of so many")
	again := flag.String("again", "", "try only the survivors in this output of an earlier run")
	flag.Parse()
	if flag.NArg() != 1 {
		return errors.New("one folder is wanted; see -help")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir := filepath.ToSlash(filepath.Clean(flag.Arg(0)))
	s := mutants.Survey{Dir: dir, By: []string{dir}, Together: runtime.GOMAXPROCS(0)}
	survived, err := os.ReadFile(cmp.Or(*again, os.DevNull))
	if err != nil {
		return err
	}
	s.Only = func(m mutants.Mutation, number int) bool {
		return strings.Contains(m.String(), *only) && number%max(*share, 1) == 0 &&
			(*again == "" || strings.Contains(string(survived), "SURVIVED "+m.String()+"\n"))
	}
	if *by != "" {
		s.By = append(s.By, strings.Split(*by, ",")...)
	}
	s.Heard = func(m mutants.Mutation, killed string) {
		if killed == "" {
			fmt.Println("SURVIVED", m)
		}
	}
	r, err := s.Run(ctx)
	if err != nil {
		return err
	}
	killed := r.Mutations - len(r.Survivors)
	fmt.Printf("%d of %d mutations are noticed: %.1f %%; %d survive with a reason, %d without\n",
		killed, r.Mutations, 100*float64(killed)/float64(r.Mutations), r.Explained, len(r.Survivors)-r.Explained)
	if len(r.Survivors) > r.Explained || killed*100 < r.Mutations*95 {
		return errors.New("tests are missing")
	}
	return nil
}
