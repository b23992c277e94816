package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"regent/emulators"
	"regent/test/load"
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
		return errors.New("usage: counts FILE")
	}
	kinds := []emulators.Kind{emulators.KindFirestore, emulators.KindSpanner}
	set, err := emulators.Start(ctx, emulators.Config{Which: kinds})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Stop(context.WithoutCancel(ctx))) }()
	found := make([]Found, len(kinds))
	err = load.Each(len(kinds), len(kinds), func(i int) (err error) {
		found[i], err = Measure(ctx, kinds[i], set.Host(kinds[i]))
		return err
	})
	if err != nil {
		return err
	}
	text, err := Report(found[0], found[1])
	if err != nil {
		return err
	}
	return os.WriteFile(args[0], []byte(text), 0o644)
}

// Found has all counts of one store.
type Found struct {
	Kind       emulators.Kind
	Operations []Operation
	Readers    Cost    // an hour of readers of one election, at one instance
	Turns      []Turns // an hour of a leader
	Ballots    []Takeover
}

const readers = 100

// Measure counts everything on the emulator at host:port, and logs how long each part took.
func Measure(ctx context.Context, kind emulators.Kind, host string) (Found, error) {
	found := Found{Kind: kind}
	note := log.New(os.Stderr, "counts: ", 0)
	for _, part := range []struct {
		name    string
		measure func(Place) error
	}{
		{"operations", func(p Place) (err error) { found.Operations, err = Operations(ctx, p); return err }},
		{"readers", func(p Place) (err error) { found.Readers, err = Readers(ctx, p, readers, time.Hour); return err }},
		{"renewals in turn", func(p Place) (err error) { found.Turns, err = InTurn(ctx, p, beatsAnHour, fleets()...); return err }},
		{"ballots", func(p Place) (err error) { found.Ballots, err = Ballots(ctx, p, ballotSizes()...); return err }},
	} {
		begin := time.Now()
		p, err := NewPlace(ctx, kind, host)
		if err == nil {
			err = part.measure(p)
		}
		if err != nil {
			return Found{}, fmt.Errorf("%s: %s: %w", kind, part.name, err)
		}
		note.Printf("%s: %s: counted in %v", kind, part.name, time.Since(begin).Round(time.Second))
	}
	return found, nil
}

// operation returns the cost of the operation of that name, which must be one of Operations.
func (f Found) operation(name string) Cost {
	i := slices.IndexFunc(f.Operations, func(o Operation) bool { return o.Name == name })
	return f.Operations[i].Cost
}
