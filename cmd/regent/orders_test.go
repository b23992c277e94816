package main

import (
	"strings"
	"testing"
	"time"
)

func TestAnOperatorOverrules(t *testing.T) {
	t.Parallel()
	env := append(startServer(t, newClock()), "REGENT_ACTOR=olga")
	regent(t, env, "acquire e --candidate a --lease 10m").want(t, exitDone)
	for _, step := range []struct {
		args string
		code int
		want []string // in what is printed
	}{
		{"overrides e", exitDone, []string{"ID", "REASON"}},
		{"pause e --for 1h --reason moving", exitDone, []string{"pause-2: The election is paused for another", "(olga: moving)"}},
		{"pause e --for 1h --reason moving", exitDone, []string{"revision       2"}},
		{"overrides e --output json", exitDone, []string{`"id":"pause-2"`, `"actor":"olga"`, `"untilMs":`}},
		{"acquire e --candidate b", exitHeld, []string{"paused", "moving", "olga"}},
		{"why e b", exitDone, []string{"b does not lead election e.", "The election is paused, for another", "Candidate a leads; its lease ends in"}},
		{"why e", exitDone, []string{"a leads with fencing token 1", "The election is paused for another"}},
		{"why e a", exitDone, []string{"a leads election e."}},
		{"why e b --output json", exitDone, []string{`"leads":false`, `"code":"PAUSED"`}},
		{"resume e --reason moved", exitDone, []string{"revision       3"}},
		{"ban e --candidate b --for 2h --reason broken", exitDone, []string{"ban-4: Candidate b is banned for another 2h"}},
		{"ban e --principal eve@example.com --for 2h --reason x", exitUsage, []string{"does not verify its callers"}},
		{"lift e --override ban-4 --reason repaired --if-revision 3", exitOther, []string{"revision 4, not 3"}},
		{"lift e --override ban-4 --reason repaired --if-revision 4", exitDone, []string{"revision       5"}},
		{"evict e --token 1 --ban 1h --reason nonsense", exitDone, []string{"at the latest (evicted)", "a is banned"}},
		{"assign e --candidate c --for 1h --reason cache", exitDone, []string{"Only candidate c is granted the lease"}},
		{"judge e --token 1 --verdict bad --evidence nonsense", exitDone, []string{"fencing token  1"}},
		{"judge e --token 2 --verdict bad --evidence nonsense", exitHeld, []string{"never granted"}},
		{"approve e --token 1 --reason fine", exitUsage, []string{"needs no approval"}},
		{"approve e --token 1 --new-epoch --reason fine", exitDone, []string{"fencing token  2"}},
		{"history e", exitDone, []string{"paused", "resumed", "banned", "lifted", "evicted", "assigned", "judged", "approved", "epoch"}},
	} {
		r := regent(t, env, step.args).want(t, step.code)
		for _, want := range step.want {
			if !strings.Contains(strings.ToLower(r.out+r.err), strings.ToLower(want)) {
				t.Errorf("regent %s: %q is not in\n%s%s", step.args, want, r.out, r.err)
			}
		}
	}
}

func TestWhyTellsOfAnApproval(t *testing.T) {
	t.Parallel()
	clock := newClock()
	env := append(startServer(t, clock), "REGENT_ACTOR=olga")
	regent(t, env, "configure e --policy", `{"approval":{"every":"1m"}}`).want(t, exitDone)
	regent(t, env, "acquire e --candidate a --lease 10m").want(t, exitDone)
	if r := regent(t, env, "why e a").want(t, exitDone); !strings.Contains(r.out, "An operator's approval is needed within ") {
		t.Errorf("before the end:\n%s", r.out)
	}
	clock.advance(2 * time.Minute)
	if r := regent(t, env, "why e").want(t, exitDone); !strings.Contains(r.out, "approve fencing token 1") {
		t.Errorf("after the end:\n%s", r.out)
	}
	regent(t, env, "approve e --token 1 --reason fine").want(t, exitDone)
	if r := regent(t, env, "why e").want(t, exitDone); strings.Contains(r.out, "approve") {
		t.Errorf("after the approval:\n%s", r.out)
	}
}

func TestAnElectionGetsAPolicy(t *testing.T) {
	t.Parallel()
	env := startServer(t, newClock())
	if r := regent(t, env, "configure e --policy", `{"maxTerm":"8h","approval":{"every":"1h","need":2}}`).want(t, exitDone); !strings.Contains(r.out, `policy         {"maxTerm":"28800s","approval":{"every":"3600s","need":2}}`) {
		t.Errorf("the policy is not printed:\n%s", r.out)
	}
	if r := regent(t, env, "configure e --lock-delay 1s").want(t, exitDone); !strings.Contains(r.out, "maxTerm") {
		t.Errorf("the policy is lost:\n%s", r.out)
	}
	if r := regent(t, env, "acquire e --candidate a").want(t, exitDone); !strings.Contains(r.out, "at the latest (approval)") {
		t.Errorf("the lease does not say when it ends:\n%s", r.out)
	}
	if r := regent(t, env, "configure e --policy", "{}").want(t, exitDone); strings.Contains(r.out, "maxTerm") {
		t.Errorf("the policy is still there:\n%s", r.out)
	}
}

func TestAWrongOrderIsAUsageError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"pause e --reason x", "--for is missing"},
		{"pause e --for 1h", "--reason is missing"},
		{"pause e --for 1h --reason x --mode slowly", "must be freeze or drain"},
		{"pause e --for 999ms --reason x", "from 1s to 720h"},
		{"pause e --for 721h --reason x", "from 1s to 720h"},
		{"pause e --for 1h --reason=", "must not be empty"},
		{"resume e --for 1h --reason x", "unknown flag: --for"},
		{"assign e --for 1h --reason x", "--candidate is missing"},
		{"ban e --candidate a/b --for 1h --reason x", "a candidate's id"},
		{"evict e --token 0 --reason x", "an integer from 1"},
		{"approve e --reason x", "--token is missing"},
		{"lift e --reason x", "--override is missing"},
		{"judge e --token 1 --verdict fine --evidence x", "must be bad or good"},
		{"why", "one argument"},
		{"why e a/b", "a candidate's id"},
		{"configure e --policy [1]", "policy must be an object"},
		{`configure e --policy {"maxTerms":"8h"}`, "unknown field"},
	} {
		if r := regent(t, nil, c.args).want(t, exitUsage); !strings.Contains(r.err, c.want) {
			t.Errorf("regent %s: %q does not say %q", c.args, r.err, c.want)
		}
	}
}
