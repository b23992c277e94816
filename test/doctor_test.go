package test

import (
	"strings"
	"testing"
	"time"

	"regent/emulators"
	"regent/test/process"
)

func TestTheDoctorFindsWhatServeNeeds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in     func(testing.TB) place
		checks int
	}{"file": {inFile, 22}, "firestore": {inFirestore, 21}, "spanner": {inSpanner, 21}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := c.in(t)
			p.serve(t).kill() // it has served before
			topic := "projects/" + emulators.Name(t) + "/topics/regent"
			out, code := examine(t, p.withEnv("PUBSUB_EMULATOR_HOST="+emulators.PubSub(t)), "--events", topic, "--members", topic+"-members")
			checks := strings.Count(out, " ok ")
			if code != 0 || checks != c.checks || strings.Contains(out, "FAILED") {
				t.Errorf("exit code %d, %d checks are ok:\n%s", code, checks, out)
			}
			if strings.Contains(out, "Firestore: TTL") != (name == "firestore") || !strings.Contains(out, "Pub/Sub: order") {
				t.Errorf("what differs from the cloud is not said:\n%s", out)
			}
			again, code := examine(t, p)
			if code != 0 || !strings.Contains(again, "fencing token 2 of election regent.doctor") {
				t.Errorf("again: exit code %d\n%s", code, again)
			}
		})
	}
}

// examine runs the doctor on a store.
func examine(t *testing.T, p place, args ...string) (out string, code int) {
	t.Helper()
	for i, arg := range p.args {
		if arg == "--store" {
			args = append([]string{"doctor", "--store", p.args[i+1]}, args...)
		}
	}
	cmd := invoke(t, process.Regent, p.env, args...)
	timer := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	text, _ := cmd.CombinedOutput()
	return string(text), cmd.ProcessState.ExitCode()
}
