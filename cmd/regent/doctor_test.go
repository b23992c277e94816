package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// says expects of regent doctor the exit code and some texts, on a local store.
func says(t *testing.T, path string, code int, wants ...string) {
	t.Helper()
	r := regent(t, nil, "doctor --store file:"+path).want(t, code)
	for _, want := range wants {
		if !strings.Contains(r.out+r.err, want) {
			t.Errorf("no %q in\n%s%s", want, r.out, r.err)
		}
	}
}

// changeLog changes the first log of a store.
func changeLog(t *testing.T, path string, change func(content []byte)) {
	t.Helper()
	name := filepath.Join(path, "log-0000000001")
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	change(content)
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDoctorSaysWhetherALocalStoreIsSound(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leases")
	p := startProcess(t, "--store", "file:"+path)
	regent(t, p.env, "acquire reports --candidate ann").want(t, exitDone)
	says(t, path, exitOther, "in use by another process", "verify the folder  FAILED", "stop that one")
	p.End(t, syscall.SIGTERM)
	says(t, path, exitDone, "elections: 1, events: 1, commits: 2, the last at 20", "; closed cleanly", "fencing token 1 of election regent.doctor", "\ncheckpoint ", "\njournal ", "at index 1")

	p = startProcess(t, "--store", "file:"+path)
	p.End(t, syscall.SIGKILL)
	says(t, path, exitDone, "elections: 2", "its server was killed, and left no commit in part", "fencing token 2")

	p = startProcess(t, "--store", "file:"+path)
	p.End(t, syscall.SIGKILL)
	changeLog(t, path, func(b []byte) { // a commit without its first sector
		used := len(strings.TrimRight(string(b), "\x00"))
		copy(b[(used/512+1)*512:], strings.Repeat("part", 100))
	})
	says(t, path, exitDone, "killed in the middle of a commit", "are cut off when the store is opened", "fencing token 3")
	says(t, path, exitDone, "closed cleanly", "fencing token 4")

	changeLog(t, path, func(b []byte) { b[100] ^= 1 })
	says(t, path, exitOther, "verify the folder  FAILED", path+" is damaged", "log-0000000001: at byte 48", "Restore a backup, with fencing tokens above every one ever seen", "1 of 1 checks failed")
	says(t, path+"-not", exitOther, "verify the folder  FAILED", "there is no folder "+path+"-not", "regent serve creates it", "1 of 1 checks failed")
}
