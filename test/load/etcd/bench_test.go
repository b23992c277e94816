package etcd

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	rounds = flag.Int("rounds", 1, "how many rounds count, after one that does not")
	long   = flag.Duration("long", 500*time.Millisecond, "how long one system runs in a round")
	page   = flag.String("page", "", "a page of Markdown that gets the figures in place of its last ones")
)

// The test binary also is etcd.
func TestMain(m *testing.M) {
	if dir, is := os.LookupEnv(memberVariable); is {
		fmt.Fprintln(os.Stderr, member(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// bench is a run.
type bench struct {
	long   time.Duration
	etcd   *etcd
	regent *regent
}

// Every contest runs once in each round, so that changes in the course of a run affect all of them.
func TestRegentBesideEtcd(t *testing.T) {
	const inMemory = 0x01021994 // TMPFS_MAGIC
	var disk syscall.Statfs_t
	if err := syscall.Statfs(os.TempDir(), &disk); err != nil || disk.Type == inMemory && *page != "" {
		t.Fatalf("the data would be in memory, where nothing is durable; choose a folder on a disk with TMPDIR (%v)", err)
	}
	b := &bench{long: *long, etcd: startEtcd(t), regent: startRegent(t)}
	contests := b.contests()
	for round := range *rounds + 1 {
		for _, c := range contests {
			c.run(t, round)
		}
	}
	report := facts() + heads
	for _, size := range sizes {
		for _, c := range contests {
			report += c.row(size)
			for k, samples := range c.samples[size] {
				if s := samples[0]; s.p99 <= 0 || s.p99 < s.p50 || s.rate <= 0 && s.cpu != 0 {
					t.Errorf("%s at %d, system %d: %+v", c.name, size, k, s)
				}
			}
		}
	}
	t.Logf("\n%s", report)
	if *page != "" {
		publish(t, report)
	}
}

// facts says what was measured, and where.
func facts() string {
	revision, _ := exec.Command("git", "describe", "--always", "--dirty", "--exclude", "*").Output()
	cpus, _ := os.ReadFile("/proc/cpuinfo")
	_, cpu, _ := strings.Cut(string(cpus), "model name\t: ")
	cpu, _, _ = strings.Cut(cpu, "\n")
	return fmt.Sprintf("%s, Regent %s, %s;\n%d cores of %s; %d rounds of %v.\n\n",
		time.Now().UTC().Format("2 January 2006"), strings.TrimSpace(string(revision)), runtime.Version(), runtime.NumCPU(), cpu, *rounds, *long)
}

const heads = "| Regent / etcd | at | per second: etcd | Regent | ratio | p50, ms: etcd | Regent | p99, ms: etcd | Regent | ratio | server's CPU, µs each: etcd | Regent |\n" +
	"|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"

// publish replaces the figures on the page.
func publish(t *testing.T, report string) {
	const begins, ends = "<!-- figures -->\n", "<!-- end of the figures -->\n"
	text, err := os.ReadFile(*page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begins)
	_, after, ended := strings.Cut(rest, ends)
	if !found || !ended {
		t.Fatalf("%s has no place for figures", *page)
	}
	if err := os.WriteFile(*page, []byte(before+begins+report+ends+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestOperationCountsByThePartOfItsTimeInTheRound(t *testing.T) {
	t.Parallel()
	zero := time.Now()
	at := func(s int) time.Time { return zero.Add(time.Duration(s) * time.Second) }
	round := span{at(10), at(20)}
	for _, c := range []struct {
		begin, end int
		want       float64
	}{
		{10, 20, 1},
		{8, 12, 0.5},
		{19, 23, 0.25},
		{5, 25, 0.5},
		{1, 2, 0},
		{15, 15, 0}, // no time at all: the clock's, not an operation's
	} {
		if got := round.part(at(c.begin), at(c.end)); got != c.want {
			t.Errorf("from %v to %v: %v, want %v", c.begin, c.end, got, c.want)
		}
	}
}

// The ratios of 1 and 4 and of 5 and 2 in their rounds have the median 1.375, not that of all.
func TestRatiosAreThoseOfTheRounds(t *testing.T) {
	t.Parallel()
	c := contest{name: "things", rate: map[int]float64{64: 1.4}, late: 1, samples: map[int][2][]sample{
		64: {{{rate: 4, p99: 4}, {rate: 2, p99: 2}}, {{rate: 1, p99: 1}, {rate: 5, p99: 5}}},
	}}
	const want = "| things | 64 | 3 | 3 | **1.38** (0.25–2.5) | | | 3 | 3 | **1.38** (0.25–2.5) | | |\n"
	if got := strings.ReplaceAll(c.row(64), "|  |", "| |"); strings.ReplaceAll(got, "|  |", "| |") != want {
		t.Errorf("got %s want %s", got, want)
	}
}
