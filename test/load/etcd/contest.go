package etcd

import (
	"context"
	"fmt"
	"slices"
	"testing"

	etcdclient "go.etcd.io/etcd/client/v3"

	"regent/test/load"
	"regent/test/process"
)

// batchSize is how many leases one call renews.
const batchSize = 100

// sizes are the numbers of connections, or of elections that change their leaders at once.
var sizes = []int{1, most}

const most = 64

// contest is something that both systems do, with goals for Regent's figures divided by etcd's.
type contest struct {
	name    string
	rate    map[int]float64 // of the rates at that size, at least
	late    float64         // of the p99, at most; 0 for no goal
	races   [2]race         // of etcd and of Regent
	samples map[int][2][]sample
}

// race lets one system run once.
type race func(ctx context.Context, size int) (sample, error)

func (b *bench) contests() []*contest {
	e, r := b.etcd, b.regent
	flat := func(name string, many, one, late float64, etcd, regent prepare) *contest {
		races := [2]race{b.flat(e.Process, etcd), b.flat(r.Process, regent)}
		return &contest{name: name, rate: map[int]float64{most: many, 1: one}, late: late, races: races}
	}
	return []*contest{
		flat("grant and release", 3, 1.3, 1, e.cycles, r.cycles),
		flat("durable renewal / synced put", 1.5, 1, 1, e.puts, r.renewals),
		flat("leases, 100 in a batch / `KeepAliveOnce`", 10, 10, 0, e.keepAlives, r.batches),
		flat("leases, 100 in a batch / 100 in a stream", 0, 0, 1, e.stream, r.batches),
		flat("strong read / linearizable get", 1.3, 1.1, 1, e.reads(), r.reads(true)),
		flat("cached read / serializable get", 1.5, 1.2, 1, e.reads(etcdclient.WithSerializable()), r.reads(false)),
		{name: "take-over after a release", late: 1.5, races: [2]race{b.handovers(e.candidate), b.handovers(r.candidate)}},
	}
}

// run runs one round. Round 0 leaves no samples. Every other round is in the reverse order.
func (c *contest) run(t testing.TB, round int) {
	t.Helper()
	if round == 0 {
		c.samples = make(map[int][2][]sample)
	}
	for _, size := range sizes {
		both := c.samples[size]
		for k := range c.races {
			k = (k + round) % 2
			s, err := c.races[k](t.Context(), size)
			if err != nil {
				t.Fatalf("%s, %s at %d: %v", c.name, [...]string{"etcd", "Regent"}[k], size, err)
			}
			if round > 0 {
				both[k] = append(both[k], s)
			}
		}
		c.samples[size] = both
	}
}

// prepare makes the i-th connection ready, and returns the operation that it repeats.
type prepare func(ctx context.Context, i int) (operation, error)

// flat returns a race in which all connections do the same as fast as they can.
func (b *bench) flat(on *process.Process, ready prepare) race {
	return func(ctx context.Context, n int) (sample, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		all := make([]operation, n)
		err := load.Each(n, n, func(i int) (err error) {
			all[i], err = ready(ctx, i)
			return err
		})
		if err != nil {
			return sample{}, err
		}
		defer b.regent.rest()
		return drive(ctx, on, all, b.long/8, b.long)
	}
}

// ratios divides Regent's figure by etcd's of the same round. Without a figure there is none.
func ratios(of [2][]sample, figure func(sample) float64) (all []float64) {
	for i, s := range of[0] {
		if by := figure(s); by > 0 {
			all = append(all, figure(of[1][i])/by)
		}
	}
	return all
}

// median returns the zero value for no numbers, and the mean of the two in the middle for an even
// count.
func median(numbers []float64) float64 {
	if len(numbers) == 0 {
		return 0
	}
	sorted, n := slices.Sorted(slices.Values(numbers)), len(numbers)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// row is the table's row for a size: the medians of the rounds and of their ratios, of these with
// the least and the most. Bold is a ratio that misses its goal.
func (c *contest) row(size int) string {
	of := c.samples[size]
	row := fmt.Sprintf("| %s | %d |", c.name, size)
	for _, m := range []struct {
		figure func(sample) float64
		missed func(ratio float64) bool // nil for no ratio
	}{
		{func(s sample) float64 { return s.rate }, func(r float64) bool { return r < c.rate[size] }},
		{func(s sample) float64 { return s.p50 }, nil},
		{func(s sample) float64 { return s.p99 }, func(r float64) bool { return c.late > 0 && r > c.late }},
		{func(s sample) float64 { return s.cpu }, nil},
	} {
		for _, samples := range of {
			var all []float64
			for _, s := range samples {
				all = append(all, m.figure(s))
			}
			row += " " + number(median(all)) + " |"
		}
		if m.missed == nil {
			continue
		}
		all := ratios(of, m.figure)
		if len(all) == 0 {
			row += " |"
			continue
		}
		text := number(median(all))
		if m.missed(median(all)) {
			text = "**" + text + "**"
		}
		row += fmt.Sprintf(" %s (%s–%s) |", text, number(slices.Min(all)), number(slices.Max(all)))
	}
	return row + "\n"
}

// number has three digits or more, and none for zero.
func number(f float64) string {
	switch {
	case f == 0:
		return ""
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.3g", f)
}
