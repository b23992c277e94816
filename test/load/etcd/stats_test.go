package main

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of   []float64
		want float64
	}{
		{[]float64{7}, 7},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		before := slices.Clone(c.of)
		if got := median(c.of); got != c.want {
			t.Errorf("median(%v) = %v, want %v", c.of, got, c.want)
		}
		if !slices.Equal(c.of, before) {
			t.Errorf("median changed its numbers: %v", c.of)
		}
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("the median of nothing is %v", got)
	}
}

func TestPercentileIsAMeasuredNumber(t *testing.T) {
	t.Parallel()
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = i + 1
	}
	for p, want := range map[float64]int{0: 1, 0.5: 50, 0.99: 99, 0.991: 100, 1: 100} {
		if got := percentile(hundred, p); got != want {
			t.Errorf("percentile %v of 1 to 100 is %d, want %d", p, got, want)
		}
	}
	if got := percentile([]int{3}, 0.5); got != 3 {
		t.Errorf("the median of one number is %d", got)
	}
	if got := percentile([]int(nil), 0.5); got != 0 {
		t.Errorf("a percentile of nothing is %d", got)
	}
}

func TestRatiosPairRounds(t *testing.T) {
	t.Parallel()
	got := ratios([]float64{2, 9, 5, 7}, []float64{1, 3, 0})
	if diff := cmp.Diff([]float64{2, 3}, got); diff != "" {
		t.Errorf("ratios (-want +got):\n%s", diff)
	}
	if got := spreadOf(got); got != (Spread{2.5, 2, 3}) {
		t.Errorf("their spread is %v", got)
	}
}

func TestSharesAreEven(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n, among int
		want     []int
	}{
		{7, 3, []int{3, 2, 2}},
		{2, 64, []int{1, 1}},
		{6, 3, []int{2, 2, 2}},
	} {
		if diff := cmp.Diff(c.want, shares(c.n, c.among)); diff != "" {
			t.Errorf("%d among %d (-want +got):\n%s", c.n, c.among, diff)
		}
	}
}

func TestUsageIsReadAfterTheProcessName(t *testing.T) {
	t.Parallel()
	const stat = "42 (a (b) c) S 1 42 42 0 -1 4194560 900 0 0 0 150 50 7 7 20 0 9 0 100 1000000 300 18446744073709551615 1 1"
	got, err := parseStat(stat, 4096)
	if want := (usage{CPU: 2 * time.Second, Memory: 300 * 4096}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if _, err := parseStat("42 (x) S 1", 4096); err == nil {
		t.Error("half a line was read")
	}
}
