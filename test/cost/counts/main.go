// Command counts measures what Regent costs on Firestore and on Spanner, on their emulators, and writes it in Markdown to the file that it is
// given:
//
//	go run ./test/cost/counts test/bench/cost.md
//
// It takes the emulators that are there, or starts them; see package emulators. All it writes are counts, so that the same code writes the same.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"regent/emulators"
	"regent/test/cost"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "counts:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) != 1 {
		return errors.New("it takes one argument: the file to write")
	}
	kinds := []emulators.Kind{emulators.KindFirestore, emulators.KindSpanner}
	set, err := emulators.Start(ctx, emulators.Config{Which: kinds})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Stop(context.WithoutCancel(ctx))) }()
	found, err := measure(ctx, set, kinds)
	if err != nil {
		return err
	}
	text, err := cost.Report(found[0], found[1])
	if err != nil {
		return err
	}
	return os.WriteFile(args[0], []byte(text), 0o644)
}

// measure counts on all stores side by side.
func measure(ctx context.Context, set *emulators.Set, kinds []emulators.Kind) ([]cost.Found, error) {
	found, errs := make([]cost.Found, len(kinds)), make([]error, len(kinds))
	note := log.New(os.Stderr, "counts: ", 0)
	var wg sync.WaitGroup
	for i, kind := range kinds {
		wg.Go(func() { found[i], errs[i] = cost.Measure(ctx, kind, set.Host(kind), note) })
	}
	wg.Wait()
	return found, errors.Join(errs...)
}
