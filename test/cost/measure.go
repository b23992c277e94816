package cost

import (
	"context"
	"fmt"
	"log"
	"slices"
	"time"

	"regent/emulators"
)

// Found is all that was counted on one store.
type Found struct {
	Kind       emulators.Kind
	Operations []Operation
	Held       Held
	Readers    Cost // an hour of readers of one election, at one instance
	Growth     []Growth
}

const readers = 100

// grownTo is how many elections are renewed. Spanner's emulator looks through the whole table for each renewal, and would take minutes for more.
func grownTo(kind emulators.Kind) []int {
	if kind == emulators.KindSpanner {
		return []int{1, 100}
	}
	return []int{1, 100, 1000}
}

// grown is what one renewal each of so many elections costs: as it was counted, or as many times what was counted of fewer.
func (f Found) grown(elections int) Growth {
	var last Growth
	for _, g := range f.Growth {
		if elections%g.Elections == 0 {
			last = g
		}
	}
	n := elections / last.Elections
	return Growth{Elections: elections, Single: last.Single.scaled(n, 1), Batched: last.Batched.scaled(n, 1)}
}

// Measure counts everything on the emulator at host:port, and notes how long each part took. It takes three minutes, or more where the emulator is
// slow, and for two of them it waits.
func Measure(ctx context.Context, kind emulators.Kind, host string, note *log.Logger) (Found, error) {
	found := Found{Kind: kind}
	for _, part := range []struct {
		name    string
		measure func(Place) error
	}{
		{"operations", func(p Place) (err error) { found.Operations, err = Operations(ctx, p); return err }},
		{"an election that is held", func(p Place) (err error) {
			found.Held, err = Hold(ctx, p, []Stretch{
				{}, {Waiting: 1}, {Waiting: 10}, {Waiting: 100}, {Waiting: 1000}, {Waiting: 10_000}, {Waiting: 10_000, Watching: 1000},
			})
			return err
		}},
		{"readers", func(p Place) (err error) { found.Readers, err = Readers(ctx, p, readers, time.Hour); return err }},
		{"growth", func(p Place) (err error) { found.Growth, err = Grow(ctx, p, grownTo(kind)...); return err }},
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

// operation is what the one of that name costs. Operations does all that are named in this package.
func (f Found) operation(name string) Cost {
	i := slices.IndexFunc(f.Operations, func(o Operation) bool { return o.Name == name })
	return f.Operations[i].Cost
}
