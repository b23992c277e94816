package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// says runs regent doctor on a local store, and requires the exit code and some texts.
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
	require.NoError(t, err)
	change(content)
	require.NoError(t, os.WriteFile(name, content, 0o600))
}

func TestDoctorSaysWhetherALocalStoreIsSound(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leases")
	p := startProcess(t, "--store", "file:"+path)
	regent(t, p.env, "acquire reports --candidate ann").want(t, exitDone)
	says(t, path, exitOther, "in use by another process", "verify the folder  FAILED", "; see cmd/regent/TROUBLESHOOTING.md#in-use")
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
	access := filepath.Join(t.TempDir(), "access.yaml")
	for text, result := range map[string]string{"{principals: [a@b.c], roles: [observer], elections: [reports]}": "access file +ok", "{principals: [a@b.c], roles: [king]}": "access file +FAILED .*#access-file"} {
		require.NoError(t, os.WriteFile(access, []byte("grants: ["+text+"]"), 0o600))
		if r := regent(t, nil, "doctor --store file:"+path+" --access "+access); !regexp.MustCompile(result).MatchString(r.out) {
			t.Errorf("doctor of %s says %s", text, r.out)
		}
	}

	changeLog(t, path, func(b []byte) { b[100] ^= 1 })
	says(t, path, exitOther, "verify the folder  FAILED", path+" is damaged", "log-0000000001: at byte 48", "Restore a backup, with fencing tokens above every one ever seen", "TROUBLESHOOTING.md#errors", "1 of 1 checks failed")
	says(t, path+"-not", exitOther, "verify the folder  FAILED", "there is no folder "+path+"-not", "regent serve creates it", "1 of 1 checks failed")
}

func TestFailuresLeadToAnEntryOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("TROUBLESHOOTING.md")
	require.NoError(t, err)
	for _, e := range entries {
		if e.anchor == "" {
			continue
		}
		heading := "\n## " + strings.ReplaceAll(e.anchor, "-", " ") + "\n"
		if !strings.Contains(strings.ToLower(string(page)), heading) && !strings.Contains(string(page), `<a id="`+e.anchor+`">`) {
			t.Errorf("the page has no entry %s", e.anchor)
		}
	}
	for failure, anchor := range map[string]string{
		"verify the folder: it is in use by another process":          "in-use",
		"clock: the store's clock went back":                          "clock",
		"service regent: IAM does not check its callers":              "unverified-callers",
		"service 127.0.0.1:8080: it is not ready":                     "unreachable",
		"open the topic of members: NotFound":                         "read-only",
		"publish: PermissionDenied":                                   "unannounced-events",
		"read: dial tcp 127.0.0.1:8085: connect: connection refused":  "emulator",
		"field events.expireAt: it has no TTL policy":                 "errors",
		"open the store: the elections of this store were moved to x": "moved",
		"verify the folder: file: there is no folder /x":              "",
		"open the store: INVALID_ARGUMENT: memory: is gone":           "",
	} {
		check, text, _ := strings.Cut(failure, ": ")
		x := &doctorReport{rows: [][]string{{check, "FAILED", "", text}}}
		x.addEntries()
		want := text
		if anchor != "" {
			want += "; see cmd/regent/TROUBLESHOOTING.md#" + anchor
		}
		if x.rows[0][3] != want {
			t.Errorf("%s: %s, want %s", failure, x.rows[0][3], anchor)
		}
	}
}
