package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
	"regent/leadership/wire"
)

func TestTwoAgentsContendForOneLeadership(t *testing.T) {
	t.Parallel()
	c := newClock()
	env := startServer(t, c)
	first := append(env, "REGENT_CANDIDATE=agent-1", "REGENT_KEY="+testKey(1), "REGENT_TOKEN=1")
	second := append(env, "REGENT_CANDIDATE=agent-2", "REGENT_KEY="+testKey(2), "REGENT_TOKEN=2")

	regent(t, first, "acquire reports").want(t, exitDone)
	if r := regent(t, second, "acquire reports").want(t, exitHeld); r.out != "" || !strings.Contains(r.err, "30s") || !strings.Contains(r.err, "agent-1") {
		t.Errorf("the second gets %q; want the leader and the remaining time", r.err)
	}
	c.advance(20 * time.Second)
	regent(t, first, "renew reports").want(t, exitDone)
	regent(t, first, "check reports").want(t, exitDone)
	regent(t, second, "release reports").want(t, exitLost)

	c.advance(30 * time.Second)
	regent(t, first, "renew reports").want(t, exitLost)
	regent(t, first, "check reports").want(t, exitHeld)
	regent(t, second, "acquire reports").want(t, exitDone)
	regent(t, second, "check reports").want(t, exitDone)
	if r := regent(t, first, "renew reports").want(t, exitLost); !strings.Contains(r.err, "stop acting") {
		t.Errorf("the first gets %q; want that it must stop", r.err)
	}
	for range 2 {
		regent(t, second, "release reports").want(t, exitDone)
	}
	regent(t, first, "acquire reports").want(t, exitDone)
}

func TestARenewalTakesAnyTicketOfAtMostOneKiB(t *testing.T) {
	t.Parallel()
	env := append(startServer(t, newClock()), "REGENT_CANDIDATE=a", "REGENT_KEY="+testKey(1), "REGENT_TOKEN=1")
	regent(t, env, "acquire e").want(t, exitDone)
	regent(t, env, "renew e --ticket "+strings.Repeat("t", leadership.MaxTicketBytes)).want(t, exitDone)
	r := regent(t, env, "renew e --ticket "+strings.Repeat("t", leadership.MaxTicketBytes+1)).want(t, exitUsage)
	if !strings.Contains(r.err, "at most 1024 bytes") || !strings.Contains(r.err, "send the one of the last reply") {
		t.Errorf("the error is %q; want the limit, and what to do", r.err)
	}
}

func TestAKeyThatTheServerChoseIsPrintedOnceAndWorks(t *testing.T) {
	t.Parallel()
	env := append(startServer(t, newClock()), "REGENT_CANDIDATE=a", "REGENT_OUTPUT=json")
	r := regent(t, env, "acquire e").want(t, exitDone)
	var grant wire.Grant
	if err := json.Unmarshal([]byte(r.out), &grant); err != nil {
		t.Fatal(err)
	}
	if _, err := leadership.ParseKey(grant.Key); err != nil || strings.Contains(r.err, grant.Key) || !strings.Contains(r.err, "Keep the key") {
		t.Fatalf("key %q on stdout (%v), stderr %q; want the key on stdout alone, and a word about it", grant.Key, err, r.err)
	}
	for _, args := range []string{"acquire e --key " + grant.Key, "renew e --token 1 --key " + grant.Key, "status e", "history e", "list"} {
		if r := regent(t, env, args).want(t, exitDone); strings.Contains(r.out+r.err, grant.Key) {
			t.Errorf("%s prints the key again: %s%s", args, r.out, r.err)
		}
	}
}

func TestAnOperatorConfiguresAndDeletes(t *testing.T) {
	t.Parallel()
	env := startServer(t, newClock())
	configuration := func(args string) wire.Configuration {
		t.Helper()
		var l wire.Lease
		if err := json.Unmarshal([]byte(regent(t, env, args+" --output json").want(t, exitDone).out), &l); err != nil {
			t.Fatal(err)
		}
		return l.Configuration
	}
	const second = wire.Duration(time.Second)
	for _, step := range []struct {
		args string
		want wire.Configuration
	}{
		{"configure e", wire.Configuration{LeaseDuration: 30 * second}},
		{"configure e --lock-delay 5s", wire.Configuration{LeaseDuration: 30 * second, LockDelay: 5 * second}},
		{"configure e --lease 1m", wire.Configuration{LeaseDuration: 60 * second, LockDelay: 5 * second}},
		{"configure e --lock-delay 0s --if-revision 3", wire.Configuration{LeaseDuration: 60 * second}},
		{"configure e --lease 2s --lock-delay 1s", wire.Configuration{LeaseDuration: 2 * second, LockDelay: second}},
		{"status e", wire.Configuration{LeaseDuration: 2 * second, LockDelay: second}},
		{"configure e --description weekly", wire.Configuration{LeaseDuration: 2 * second, LockDelay: second, Description: "weekly"}},
		{"configure e --max-lease 1h", wire.Configuration{LeaseDuration: 2 * second, MaxLeaseDuration: 3600 * second, LockDelay: second, Description: "weekly"}},
		{"configure e --lock-delay 1s", wire.Configuration{LeaseDuration: 2 * second, MaxLeaseDuration: 3600 * second, LockDelay: second, Description: "weekly"}},
		{"configure e --max-lease none", wire.Configuration{LeaseDuration: 2 * second, LockDelay: second, Description: "weekly"}},
		{"configure e --lease 3s", wire.Configuration{LeaseDuration: 3 * second, LockDelay: second, Description: "weekly"}},
		{"configure e --description=", wire.Configuration{LeaseDuration: 3 * second, LockDelay: second}},
		{"configure e --retire-after 720h", wire.Configuration{LeaseDuration: 3 * second, LockDelay: second, RetireAfter: 720 * 3600 * second}},
		{"configure e --lock-delay 0s", wire.Configuration{LeaseDuration: 3 * second, RetireAfter: 720 * 3600 * second}},
		{"configure e --retire-after 0s", wire.Configuration{LeaseDuration: 3 * second}},
	} {
		if diff := cmp.Diff(step.want, configuration(step.args)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", step.args, diff)
		}
	}
	regent(t, env, "configure e --retire-after 59m").want(t, exitUsage)
	regent(t, env, "configure e --lease 4s --if-revision 1").want(t, exitOther)
	regent(t, env, "acquire e --candidate a").want(t, exitDone)
	if r := regent(t, env, "delete e").want(t, exitHeld); !strings.Contains(r.err, "--force") {
		t.Errorf("%q does not say how to delete it all the same", r.err)
	}
	regent(t, env, "delete e --force --if-revision 1").want(t, exitOther)
	regent(t, env, "delete e --force").want(t, exitDone)
	regent(t, env, "status e").want(t, exitOther)
	regent(t, env, "acquire e --candidate a").want(t, exitOther)
	regent(t, env, "configure e").want(t, exitDone)
	regent(t, env, "delete never-seen").want(t, exitOther)
}

func TestAnOperatorUnlocksOnceTheRiskIsAcknowledged(t *testing.T) {
	t.Parallel()
	env := startServer(t, newClock())
	regent(t, env, "configure e --max-lease 1h").want(t, exitDone)
	if r := regent(t, env, "acquire e --candidate a --lease 24h").want(t, exitUsage); !strings.Contains(r.err, "1h at most") {
		t.Errorf("%q does not name the longest lease", r.err)
	}
	regent(t, env, "acquire e --candidate a --lease 1h").want(t, exitDone)
	if r := regent(t, env, "unlock e").want(t, exitUsage); !strings.Contains(r.err, "reason") {
		t.Errorf("%q does not ask for a reason", r.err)
	}
	r := regent(t, env, "unlock e --reason gone").want(t, exitHeld)
	_, sentence, found := strings.Cut(r.err, "acknowledge: ")
	if sentence = strings.TrimSpace(sentence); !found || !strings.HasPrefix(sentence, "two leaders may believe until ") {
		t.Fatalf("%q does not state the sentence", r.err)
	}
	const args = "unlock e --reason gone --actor olga --acknowledge"
	regent(t, env, args, strings.ToUpper(sentence)).want(t, exitHeld)
	regent(t, env, args, sentence).want(t, exitDone)
	regent(t, env, "acquire e --candidate b").want(t, exitDone)
	if r := regent(t, env, "history e --output json").want(t, exitDone); !strings.Contains(r.out, "unlocked") || !strings.Contains(r.out, "olga") {
		t.Errorf("the history has no unlock by olga:\n%s", r.out)
	}
}

func TestAllPagesAreRead(t *testing.T) {
	t.Parallel()
	c := newClock()
	env := append(startServer(t, c), "REGENT_CANDIDATE=a", "REGENT_KEY="+testKey(1))
	const events = leadership.MaxPageSize + 2 // an acquire and a release each
	for token := range events / 2 {
		regent(t, env, "acquire e").want(t, exitDone)
		regent(t, env, "release e --token", jsonOf(t, token+1)).want(t, exitDone)
	}
	r := regent(t, env, "history e --output json").want(t, exitDone)
	if n := strings.Count(r.out, "\n"); n != events {
		t.Errorf("%d events, want %d", n, events)
	}
	r = regent(t, env, "history e --output json --after", jsonOf(t, events-1)).want(t, exitDone)
	if n := strings.Count(r.out, "\n"); n != 1 {
		t.Errorf("%d events after the last but one, want 1", n)
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
