package main

import (
	"encoding/json"
	"strings"
	"testing"

	"regent/leadership"
	"regent/leadership/wire"
)

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

func TestAnOperatorUnlocksOnceTheRiskIsAcknowledged(t *testing.T) {
	t.Parallel()
	env := startServer(t, newClock())
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
