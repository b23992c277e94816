//go:build !race

package allocations

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
	"regent/store/file"
)

var update = flag.Bool("update", false, "write what is allocated to testdata; review it before you commit it")

// call is a call of a verb, about an election of its own.
type call struct {
	verb        wire.Verb
	query, body string
	before      *call // a call that is made before, and not measured
	what        string
}

func (c call) name() string { return strings.TrimSuffix(string(c.verb)+", "+c.what, ", ") }

// What callers send. The elections have a policy, and their leader, who has led before, has
// reported its work: so it shows if a call reads or copies more of a record than it needs.
const (
	candidate = `"candidateId":"ann","key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"`
	leader    = candidate + `,"fencingToken":2`
	policy    = `"leaseDuration":"1h","description":"nightly work","policy":{"stuckAfter":"5h","budget":{"tokensUsed":1000000},"errorRate":{"max":0.5,"min":20},"cooldown":"10m","verdicts":3}`
)

var (
	release = call{verb: wire.VerbRelease, body: `{` + leader + `}`}
	pause   = call{verb: wire.VerbPause, body: `{"for":"1h","reason":"maintenance","actor":"olga"}`}
)

var calls = []call{
	{verb: wire.VerbAcquire, body: `{` + candidate + `}`, before: &release},
	{verb: wire.VerbAcquire, body: `{` + candidate + `}`, what: "by the leader"},
	{verb: wire.VerbRenew, body: `{` + leader + `}`},
	{verb: wire.VerbRenew, body: `{` + leader + `,"report":{"progress":3}}`, what: "with a report"},
	{verb: wire.VerbBatchRenew, body: batch("renewals", leader), what: "100 leases"},
	release,
	{verb: wire.VerbCheckToken, body: `{"fencingToken":2}`},
	{verb: wire.VerbBatchCheckTokens, body: batch("checks", `"fencingToken":2`), what: "100 tokens"},
	{verb: wire.VerbRead},
	{verb: wire.VerbRead, query: "?consistency=strong", what: "from the store"},
	{verb: wire.VerbList, query: "?prefix=many-&pageSize=100", what: "100 elections"},
	{verb: wire.VerbEvents},
	{verb: wire.VerbConfigure, body: `{"lockDelay":"5s",` + policy + `}`},
	{verb: wire.VerbDelete, before: &release},
	{verb: wire.VerbAssign, body: `{"candidateId":"bob","for":"1h","reason":"maintenance","actor":"olga"}`},
	{verb: wire.VerbEvict, body: `{"reason":"maintenance","actor":"olga"}`},
	pause,
	{verb: wire.VerbResume, body: `{"reason":"maintenance","actor":"olga"}`, before: &pause},
	{verb: wire.VerbBan, body: `{"candidateId":"bob","for":"1h","reason":"maintenance","actor":"olga"}`},
	{verb: wire.VerbOverrides, before: &pause},
	{verb: wire.VerbJudge, body: `{"fencingToken":2,"verdict":"bad","evidence":"the report was late","actor":"vera"}`},
	{verb: wire.VerbJoin, body: `{"candidateId":"bob","role":"follower","ttl":"30s"}`},
	{verb: wire.VerbMembers},
	{verb: wire.VerbLive},
}

// unmeasured are verbs that wait, that stream, or that a term, or a journal, sees seldom.
var unmeasured = []wire.Verb{
	wire.VerbWatch, wire.VerbWatchAll, wire.VerbAcknowledgement, wire.VerbFollowJournal,
	wire.VerbUnlock, wire.VerbApprove, wire.VerbLift, wire.VerbHalt, wire.VerbUnhalt, wire.VerbStepDown, wire.VerbRequestApproval, wire.VerbExplain, wire.VerbLeave,
	wire.VerbHandOver, wire.VerbSayReady, wire.VerbSayServing, wire.VerbYield, wire.VerbDelegate, wire.VerbTree, wire.VerbTick, wire.VerbReady, wire.VerbSpec, wire.VerbKeySet,
	wire.VerbPutCheckpoint, wire.VerbCheckpoint, wire.VerbOpenJournal, wire.VerbAppendJournal, wire.VerbJournal, wire.VerbSnapshotJournal, wire.VerbReadSnapshot,
	wire.VerbBeginEffect, wire.VerbFinishEffect, wire.VerbEffects, wire.VerbPropose, wire.VerbDecide, wire.VerbProposals,
}

// many is how many parts a batch has, and a list.
const many = 100

// batch is a body with a part for each of many elections.
func batch(field, part string) string {
	var parts []string
	for i := range many {
		parts = append(parts, fmt.Sprintf(`{"election":"many-%d",%s}`, i, part))
	}
	return fmt.Sprintf(`{"%s":[%s]}`, field, strings.Join(parts, ","))
}

func TestACallAllocatesWhatTestdataSays(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector empties pools
	d := newDoor(t)
	for i := range many {
		d.lead(fmt.Sprintf("many-%d", i))
	}
	measured, unseen := map[string]cost{}, wire.Verbs()
	for _, c := range calls {
		measured[c.name()] = d.measure(c)
		unseen = slices.DeleteFunc(unseen, func(r wire.Row) bool { return r.Verb == c.verb })
	}
	for _, row := range unseen {
		if !slices.Contains(unmeasured, row.Verb) {
			t.Errorf("%s is not measured; add it to calls", row.Verb)
		}
	}
	if *update {
		write(t, measured)
	}
	said := read(t)
	for name, want := range said {
		got, ok := measured[name]
		if !ok {
			t.Errorf("%s is in testdata, and is no call", name)
		}
		if got.near(want) {
			continue
		}
		t.Errorf("%s: %d allocations and %d bytes, and testdata says %d and %d; if that is intended: go test ./test/load/allocations -update", name, got.allocations, got.bytes, want.allocations, want.bytes)
	}
	for name := range measured {
		if _, ok := said[name]; !ok {
			t.Errorf("%s is not in testdata", name)
		}
	}
}

// cost is what a call allocates.
type cost struct{ allocations, bytes uint64 }

// near reports whether the cost is that of testdata, but for a twentieth, or little.
func (c cost) near(said cost) bool {
	near := func(got, want, little uint64) bool {
		return max(got, want)-min(got, want) <= want/20+little
	}
	return near(c.allocations, said.allocations, 2) && near(c.bytes, said.bytes, 512)
}

// door is the HTTP API on a store in a folder.
type door struct {
	*testing.T
	handler http.Handler
	n       int // elections that were made for one call
}

func newDoor(t *testing.T) *door {
	s, err := file.Open(filepath.Join(t.TempDir(), "leases"), file.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	i, err := instance.New(instance.Config{Store: s, Journal: s, Name: "a", Alone: true})
	require.NoError(t, err)
	return &door{T: t, handler: httpapi.New(httpapi.Config{Service: instance.Guard(i)})}
}

// lead makes ann the leader of a new election for the second time.
func (d *door) lead(election string) {
	d.do(call{verb: wire.VerbConfigure, body: `{` + policy + `}`}, election)
	d.do(call{verb: wire.VerbAcquire, body: `{` + candidate + `}`}, election)
	d.do(call{verb: wire.VerbRelease, body: `{` + candidate + `,"fencingToken":1}`}, election)
	d.do(call{verb: wire.VerbAcquire, body: `{` + candidate + `}`}, election)
	d.do(call{verb: wire.VerbRenew, body: `{` + leader + `,"report":{"progress":1}}`}, election)
}

// measure is the least that the call costs in some attempts: the others also count what the runtime
// does meanwhile, or fill pools.
func (d *door) measure(c call) (least cost) {
	d.Helper()
	for i := range 5 {
		d.n++
		election := fmt.Sprintf("one-%d", d.n)
		d.lead(election)
		if c.before != nil {
			d.do(*c.before, election)
		}
		if got := d.do(c, election); i == 0 {
			least = got
		} else {
			least = cost{min(least.allocations, got.allocations), min(least.bytes, got.bytes)}
		}
	}
	return least
}

// do makes a call, which must succeed, and returns what the door has allocated.
func (d *door) do(c call, election string) cost {
	d.Helper()
	row := c.verb.Row()
	r, err := http.NewRequestWithContext(d.Context(), row.Method, strings.ReplaceAll(row.Path, "{election}", election)+c.query, nil)
	require.NoError(d, err)
	if c.body != "" {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(c.body)), int64(len(c.body))
		r.Header.Set("Content-Type", wire.ContentType)
	}
	if row.Conditional {
		d.condition(r, election)
	}
	w := &reply{header: make(http.Header, 16), status: http.StatusOK, body: make([]byte, 0, 1<<17)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d.handler.ServeHTTP(w, r)
	runtime.ReadMemStats(&after)
	if w.status != http.StatusOK || strings.Contains(string(w.body), `"error":`) {
		d.Fatalf("%s: %d %s", c.name(), w.status, w.body)
	}
	return cost{after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc}
}

// condition names the revision that the election has now.
func (d *door) condition(r *http.Request, election string) {
	read := wire.VerbRead.Row()
	strong, err := http.NewRequestWithContext(d.Context(), read.Method, strings.ReplaceAll(read.Path, "{election}", election)+"?consistency=strong", nil)
	require.NoError(d, err)
	w := &reply{header: http.Header{}, status: http.StatusOK}
	d.handler.ServeHTTP(w, strong)
	var now struct{ Revision leadership.Revision }
	if w.status == http.StatusNotFound {
		r.Header.Set("If-None-Match", "*")
	} else if err := json.Unmarshal(w.body, &now); err != nil {
		d.Fatal(err)
	} else {
		r.Header.Set("If-Match", wire.ETag(now.Revision))
	}
}

// reply is an http.ResponseWriter that allocates nothing for answers of a usual length.
type reply struct {
	header http.Header
	status int
	body   []byte
}

func (r *reply) Header() http.Header    { return r.header }
func (r *reply) WriteHeader(status int) { r.status = status }

func (r *reply) Write(part []byte) (int, error) {
	r.body = append(r.body, part...)
	return len(part), nil
}

const table = "testdata/allocations.md"

func write(t *testing.T, costs map[string]cost) {
	text := []byte("| call | allocations | bytes |\n| --- | ---: | ---: |\n")
	for _, name := range slices.SortedFunc(maps.Keys(costs), strings.Compare) {
		text = fmt.Appendf(text, "| %s | %d | %d |\n", name, costs[name].allocations, costs[name].bytes)
	}
	require.NoError(t, os.WriteFile(table, text, 0o644))
}

var line = regexp.MustCompile(`(?m)^\| (.+) \| (\d+) \| (\d+) \|$`)

func read(t *testing.T) map[string]cost {
	text, err := os.ReadFile(table)
	require.NoError(t, err)
	costs := map[string]cost{}
	for _, row := range line.FindAllStringSubmatch(string(text), -1) {
		allocations, err1 := strconv.ParseUint(row[2], 10, 64)
		bytes, err2 := strconv.ParseUint(row[3], 10, 64)
		require.NoError(t, cmp.Or(err1, err2))
		costs[row[1]] = cost{allocations, bytes}
	}
	return costs
}
