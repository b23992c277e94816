package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
	"regent/leadership/wire"
)

// two returns the environments of two candidates.
func two(t *testing.T) (env, ann, bob []string) {
	t.Helper()
	env = startServer(t, newClock())
	ann = append(env[:1:1], "REGENT_CANDIDATE=ann", "REGENT_KEY="+testKey(1), "REGENT_TOKEN=1")
	bob = append(env[:1:1], "REGENT_CANDIDATE=bob", "REGENT_KEY="+testKey(2), "REGENT_TOKEN=2")
	return env, ann, bob
}

// has expects the words in the output, in their order and with any spaces between them.
func (r result) has(t *testing.T, want string) {
	t.Helper()
	if !strings.Contains(strings.Join(strings.Fields(r.out), " "), want) {
		t.Errorf("no %q in\n%s", want, r.out)
	}
}

func TestAnInheritedCheckpointComesWithTheLease(t *testing.T) {
	t.Parallel()
	env, ann, bob := two(t)
	if r := regent(t, env, "checkpoint get reports").want(t, exitOther); !strings.Contains(r.err, "reports") {
		t.Errorf("%q", r.err)
	}
	regent(t, ann, "acquire reports --inherit").want(t, exitDone)
	if r := regent(t, env, "checkpoint get reports").want(t, exitOther); !strings.Contains(r.err, "has no checkpoint") {
		t.Errorf("%q", r.err)
	}
	regentReading(t, `{"done": 412}`, ann, "checkpoint put reports --task", "shard 3").want(t, exitDone).has(t, `task shard 3 data {"done":412}`)
	if r := regent(t, env, "checkpoint get reports --data").want(t, exitDone); r.out != `{"done":412}`+"\n" {
		t.Errorf("the data alone is %q", r.out)
	}
	regent(t, ann, "release reports").want(t, exitDone)
	r := regent(t, bob, "acquire reports --inherit").want(t, exitDone)
	r.has(t, "inherited from ann with fencing token 1, put 2026-03-01T12:00:00Z, whose term ended (released)")
	r.has(t, `inherited task shard 3 inherited data {"done":412}`)
	if r := regentReading(t, `{"done": 413}`, ann, "checkpoint put reports").want(t, exitHeld); !strings.Contains(r.err, "stop acting") {
		t.Errorf("a late put is refused with %q", r.err)
	}

	file := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(file, []byte("[1,\n 2]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got wire.Checkpoint
	if err := json.Unmarshal([]byte(regent(t, bob, "checkpoint put reports --output json --file "+file).want(t, exitDone).out), &got); err != nil || string(got.Data) != "[1,2]" || got.FencingToken != 2 {
		t.Errorf("%+v (%v)", got, err)
	}
	regent(t, bob, "checkpoint put reports --uri gs://bucket/state --sha256 "+strings.Repeat("0a", 32)).want(t, exitDone).has(t, "uri gs://bucket/state sha256 0a0a")
	if r := regent(t, env, "checkpoint get reports --data").want(t, exitOther); !strings.Contains(r.err, "at gs://bucket/state") {
		t.Errorf("%q does not say where the data is", r.err)
	}
}

func TestAJournalIsAppendedReadAndCompacted(t *testing.T) {
	t.Parallel()
	env, ann, bob := two(t)
	regent(t, ann, "acquire state").want(t, exitDone)
	regentReading(t, "{\"set\":1}\n{\"set\":2} \"text\"", ann, "journal append state --type put").want(t, exitDone).has(t, "election state index 3")
	for range 2 { // the reply to the first was lost
		regentReading(t, "4", ann, "journal append state --after 3").want(t, exitDone).has(t, "index 4")
	}
	if r := regentReading(t, "5", ann, "journal append state --after 3").want(t, exitOther); !strings.Contains(r.err, "at index 4, not 3") {
		t.Errorf("%q", r.err)
	}
	r := regent(t, env, "journal read state --after 1").want(t, exitDone)
	r.has(t, `INDEX AT TOKEN TYPE DATA 2 2026-03-01T12:00:00Z 1 put {"set":2} 3 2026-03-01T12:00:00Z 1 put "text" 4 2026-03-01T12:00:00Z 1 - 4`)
	if r := regent(t, env, "journal read state --limit 2 --output json").want(t, exitDone); strings.Count(r.out, "\n") != 2 || !strings.HasPrefix(r.out, `{"index":1,"fencingToken":1,"at":`) {
		t.Errorf("as documents:\n%s", r.out)
	}
	if r := regent(t, env, "journal snapshot state").want(t, exitOther); !strings.Contains(r.err, "no snapshot") {
		t.Errorf("%q", r.err)
	}
	regentReading(t, `{"sum":3}`, ann, "journal snapshot state --up-to 3").want(t, exitDone).has(t, "index 4 snapshot up to 3")
	regent(t, env, "journal snapshot state").want(t, exitDone).has(t, `up to 3 fencing token 1 put 2026-03-01T12:00:00Z data {"sum":3}`)
	if r := regent(t, env, "journal read state").want(t, exitOther); !strings.Contains(r.err, "go on after 3") {
		t.Errorf("%q", r.err)
	}
	regent(t, env, "journal read state --after 3").want(t, exitDone).has(t, `4 2026-03-01T12:00:00Z 1 - 4`)

	regent(t, env, "journal follow state --count 2").want(t, exitDone).has(t, `3 2026-03-01T12:00:00Z 1 SNAPSHOT {"sum":3} 4 2026-03-01T12:00:00Z 1 - 4`)
	if r := regent(t, env, "journal follow state --after 3 --count 1 --output json").want(t, exitDone); !strings.HasPrefix(r.out, `{"entry":{"index":4,`) {
		t.Errorf("as documents:\n%s", r.out)
	}

	regent(t, ann, "release state").want(t, exitDone)
	regent(t, bob, "acquire state").want(t, exitDone)
	regentReading(t, "5", bob, "journal append state").want(t, exitDone).has(t, "index 5")
	if r := regentReading(t, "6", ann, "journal append state --after 5").want(t, exitHeld); !strings.Contains(r.err, "stop acting") {
		t.Errorf("a paused leader's append is refused with %q", r.err)
	}
}

func TestDataThatIsNotUTF8IsNotChangedButRefused(t *testing.T) {
	t.Parallel()
	env, ann, _ := two(t)
	regent(t, ann, "acquire state").want(t, exitDone)
	for _, args := range []string{"journal append state", "journal append state --after 0", "checkpoint put state"} {
		if r := regentReading(t, "\"\xff\"", ann, args).want(t, exitUsage); !strings.Contains(r.err, "standard input is not in UTF-8") {
			t.Errorf("%s: %q", args, r.err)
		}
	}
	if r := regent(t, env, "journal read state --output json").want(t, exitDone); r.out != "" {
		t.Errorf("appended: %s", r.out)
	}
}

func TestAllPagesOfAJournalAreRead(t *testing.T) {
	t.Parallel()
	env, ann, _ := two(t)
	regent(t, ann, "acquire state").want(t, exitDone)
	for range 3 {
		regentReading(t, strings.Repeat("7\n", leadership.MaxEntries), ann, "journal append state").want(t, exitDone)
	}
	if r := regent(t, env, "journal read state --output json").want(t, exitDone); strings.Count(r.out, "\n") != 3*leadership.MaxEntries {
		t.Errorf("%d entries, want %d", strings.Count(r.out, "\n"), 3*leadership.MaxEntries)
	}
	if r := regent(t, env, "journal read state --limit 1100 --output json").want(t, exitDone); strings.Count(r.out, "\n") != 1100 {
		t.Errorf("%d entries, want 1100", strings.Count(r.out, "\n"))
	}
	if r := regentReading(t, strings.Repeat("7\n", leadership.MaxEntries+1), ann, "journal append state").want(t, exitUsage); !strings.Contains(r.err, "from 1 to 500 entries") {
		t.Errorf("%q", r.err)
	}
}

func TestATaskIsDelegatedAndItsTreeIsDrawn(t *testing.T) {
	t.Parallel()
	env, ann, bob := two(t)
	regent(t, env, "configure research --policy", `{"delegation":{"depth":2,"children":2,"budget":100}}`).want(t, exitDone)
	regent(t, ann, "acquire research").want(t, exitDone)
	regent(t, ann, "delegate research --child sources --children 1 --budget 60").want(t, exitDone).has(t, "election research.sources")
	regent(t, append(bob, "REGENT_TOKEN=1"), "acquire research.sources").want(t, exitDone).has(t, "via research:1")
	regent(t, append(bob, "REGENT_TOKEN=1"), "delegate research.sources --child web").want(t, exitDone)
	for range 2 {
		regent(t, ann, "delegate research --child review --depth 0 --budget 40").want(t, exitDone)
	}
	if r := regent(t, ann, "delegate research --child more").want(t, exitOther); !strings.Contains(r.err, "may delegate no more") {
		t.Errorf("%q", r.err)
	}
	want := `
ELECTION                 STATE   LEADER  TOKEN  EXPIRES IN  MAY DELEGATE
research                 held    ann     1      30s         2, 2 levels deep, budget 100
├─ research.review       vacant  -       0      -           -, budget 40
└─ research.sources      held    bob     1      30s         1, 1 level deep, budget 60
   └─ research.sources.web  vacant  -       0      -           -
`[1:]
	r := regent(t, env, "tree research").want(t, exitDone)
	if diff := cmp.Diff(strings.Fields(want), strings.Fields(r.out)); diff != "" {
		t.Errorf("-want +got:\n%s\n%s", diff, r.out)
	}
	var tree wire.Tree
	if err := json.Unmarshal([]byte(regent(t, env, "tree research --output json").want(t, exitDone).out), &tree); err != nil || len(tree.Children) != 2 || len(tree.Children[1].Children) != 1 {
		t.Errorf("%+v (%v)", tree, err)
	}
	regent(t, env, "why research.sources").want(t, exitDone).has(t, "Its lease stands on that of research:1, and ends with it at the latest.")
	regent(t, ann, "release research").want(t, exitDone)
}

func TestOnlyLeadersOfItsPartsLeadTheWhole(t *testing.T) {
	t.Parallel()
	env, ann, bob := two(t)
	regent(t, env, "configure orders --policy", `{"leadersOf":"orders.","promotion":true}`).want(t, exitDone)
	regent(t, env, "configure orders --lease 20s").want(t, exitDone).has(t, `policy {"promotion":true,"leadersOf":"orders."}`)
	regent(t, ann, "acquire orders.eu").want(t, exitDone)
	if r := regent(t, ann, "acquire orders --via orders.eu:1").want(t, exitOther); !strings.Contains(r.err, "once an operator has configured it") {
		t.Errorf("an election of its own making: %q", r.err)
	}
	regent(t, env, "configure orders.eu").want(t, exitDone)
	if r := regent(t, ann, "acquire orders").want(t, exitOther); !strings.Contains(r.err, "send via") {
		t.Errorf("%q does not say what to do", r.err)
	}
	regent(t, bob, "acquire orders --via orders.eu:1").want(t, exitOther)
	r := regent(t, ann, "acquire orders --via orders.eu:1").want(t, exitDone)
	r.has(t, "ready no: it must not write yet via orders.eu:1")
	regent(t, env, "check orders --token 1").want(t, exitDone)
	regent(t, env, "check orders --token 1 --write").want(t, exitHeld)
	regent(t, ann, "ready orders").want(t, exitDone)
	regent(t, env, "check orders --token 1 --write").want(t, exitDone)
}

func TestWhoWaitsBehindAParentWithoutALeaderIsTold(t *testing.T) {
	t.Parallel()
	c := newClock()
	env := startServer(t, c)
	ann := append(env, "REGENT_CANDIDATE=ann", "REGENT_KEY="+testKey(1), "REGENT_TOKEN=1")
	regent(t, ann, "acquire jobs").want(t, exitDone)
	regent(t, ann, "delegate jobs --child a").want(t, exitDone)
	c.advance(time.Minute)
	if r := regent(t, env, "acquire jobs.a --candidate bob").want(t, exitHeld); !strings.Contains(r.err, `part of election "jobs", which has no leader`) {
		t.Errorf("%q", r.err)
	}
}
