package main

import (
	"strings"
	"syscall"
	"testing"
)

func TestACommandRunsOnce(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--store", "memory:")
	for name, c := range map[string]struct {
		runs []string // the arguments of each, before the command
		do   string
		says string // by the last one
		want int    // the exit code of the last one
	}{
		"done":                         {[]string{""}, "echo ran $REGENT_EFFECT", "ran done", 0},
		"done-before":                  {[]string{"", "--if-in-doubt run"}, "echo ran", "", 0},
		"failed":                       {[]string{""}, "exit 7", "", 7},
		"failed-before":                {[]string{"", ""}, "echo ran; exit 7", "", exitInDoubt},
		"failed-before-skipped":        {[]string{"", "--if-in-doubt skip"}, "exit 7", "", 0},
		"failed-before-skipped-is-not": {[]string{"", "--if-in-doubt skip", ""}, "exit 7", "", exitInDoubt},
		"failed-before-runs-again":     {[]string{"", "--if-in-doubt run"}, "echo ran; exit 7", "ran", 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, flags := range c.runs {
				args := append([]string{"once", "nightly-" + name, name}, strings.Fields(flags)...)
				w := startCommand(t, p.env, append(args, "--", "sh", "-c", c.do)...)
				if i < len(c.runs)-1 {
					for w.lines.Scan() {
					}
					w.Wait()
					continue
				}
				if c.says != "" {
					w.says(t, c.says)
				}
				w.ends(t, c.want)
				if c.says == "" && w.lines.Text() != "" {
					t.Errorf("it says %q", w.lines.Text())
				}
			}
		})
	}
}

// A command that is killed leaves its effect in doubt, which a person settles.
func TestAKilledCommandLeavesItsEffectInDoubt(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--store", "memory:")
	first := startCommand(t, p.env, "once", "nightly", "day-1", "--candidate", "ann", "--lease", "3s", "--", "sh", "-c", "echo begun; exec sleep 60")
	first.says(t, "begun")
	if r := regent(t, p.env, "effects nightly").want(t, exitDone); !strings.Contains(r.out, "day-1") || !strings.Contains(r.out, "begun") {
		t.Errorf("the effects are\n%s", r.out)
	}
	first.Process.Signal(syscall.SIGKILL)
	second := startCommand(t, p.env, "once", "nightly", "day-1", "--candidate", "bob", "--", "echo", "ran")
	second.ends(t, exitInDoubt)
	if log := second.logged(); !strings.Contains(log, `effect "day-1" of election "nightly" is in doubt: ann has begun it`) {
		t.Errorf("the log is\n%s", log)
	}
	startCommand(t, p.env, "once", "nightly", "day-1", "--if-in-doubt", "run", "--", "true").ends(t, exitDone)
	if r := regent(t, p.env, "effects nightly --output json").want(t, exitDone); !strings.Contains(r.out, `"state":"done"`) {
		t.Errorf("the effects are\n%s", r.out)
	}
	r := regent(t, p.env, "once nightly day/1 -- true").want(t, exitUsage)
	if !strings.Contains(r.err, `an effect's id is made of`) {
		t.Errorf("a wrong id: %s", r.err)
	}
	stopped := startCommand(t, p.env, "once", "nightly", "day-3", "--", "sh", "-c", "trap 'exit 0' TERM; echo begun; while :; do sleep 0.1; done")
	stopped.says(t, "begun")
	stopped.Process.Signal(syscall.SIGTERM)
	stopped.ends(t, exitInDoubt)
	failed := startCommand(t, p.env, "once", "nightly", "day-4", "--", "false")
	failed.ends(t, 1)
	if log := failed.logged(); !strings.Contains(log, "the command has failed, so the effect stays in doubt") {
		t.Errorf("the log is\n%s", log)
	}
	regent(t, p.env, "once nightly -- true").want(t, exitUsage)
	regent(t, p.env, "once nightly day-2").want(t, exitUsage)
}

// Leaders of two seats note their effects in two logs.
func TestACommandIsNotRunOnceAtEachSeat(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--store", "memory:")
	regent(t, p.env, `configure nightly --policy {"seats":2}`).want(t, exitDone)
	startCommand(t, p.env, "once", "nightly", "day-1", "--", "echo", "ran").ends(t, exitUsage)
	one := startCommand(t, p.env, "once", "nightly.1", "day-1", "--", "echo", "ran")
	one.says(t, "ran")
	one.ends(t, exitDone)
}
