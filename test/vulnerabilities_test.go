package test

import (
	"compress/gzip"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// plantedVulnerability is one that leadership/boottime calls on Linux.
var plantedVulnerability = map[string]string{
	"/index/db.json":      `{"modified":"2026-01-01T00:00:00Z"}`,
	"/index/modules.json": `[{"path":"golang.org/x/sys","vulns":[{"id":"GO-2026-9999","modified":"2026-01-01T00:00:00Z"}]}]`,
	"/ID/GO-2026-9999.json": `{"schema_version":"1.3.1","id":"GO-2026-9999","modified":"2026-01-01T00:00:00Z","published":"2026-01-01T00:00:00Z",
		"summary":"a clock that lies","details":"planted","affected":[{"package":{"name":"golang.org/x/sys","ecosystem":"Go"},
		"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}],
		"ecosystem_specific":{"imports":[{"path":"golang.org/x/sys/unix","symbols":["ClockGettime"]}]}}],
		"database_specific":{"url":"https://pkg.go.dev/vuln/GO-2026-9999","review_status":"REVIEWED"}}`,
}

// vulnerabilityDatabase serves files as vuln.go.dev does: the client asks for them compressed, the
// probe does not.
func vulnerabilityDatabase(t *testing.T, files map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, compressed := strings.CutSuffix(r.URL.Path, ".gz")
		text, ok := files[name]
		switch {
		case !ok:
			http.NotFound(w, r)
		case compressed:
			z := gzip.NewWriter(w)
			defer z.Close()
			fmt.Fprint(z, text)
		default:
			fmt.Fprint(w, text)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestVulnerabilitiesAreFoundOrNotCheckedIsSaid(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	clean := map[string]string{"/index/db.json": plantedVulnerability["/index/db.json"], "/index/modules.json": "[]"}
	for name, c := range map[string]struct {
		database string
		code     int // govulncheck has 3 for what it finds
		says     string
	}{
		"none known":            {vulnerabilityDatabase(t, clean), 0, "No vulnerabilities found"},
		"one known":             {vulnerabilityDatabase(t, plantedVulnerability), 3, "GO-2026-9999"},
		"no such name":          {"https://database.invalid", 75, "NOT CHECKED for known vulnerabilities"},
		"it never answers":      {"http://" + silent.Addr().String(), 75, "NOT CHECKED for known vulnerabilities"},
		"it is not there":       {vulnerabilityDatabase(t, nil), 75, "NOT CHECKED for known vulnerabilities"},
		"it lacks half of that": {vulnerabilityDatabase(t, map[string]string{"/index/db.json": "{}"}), 1, "vulndb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(within(t, 3*time.Minute), "./vulnerabilities.sh", "./leadership/boottime")
			notes := filepath.Join(t.TempDir(), "not-checked")
			cmd.Env = append(os.Environ(), "GOVULNDB="+c.database, "REGENT_NOT_CHECKED="+notes)
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != c.code || !strings.Contains(string(out), c.says) {
				t.Errorf("%v; want exit code %d, and that it says %q:\n%s", err, c.code, c.says, out)
			}
			if noted, _ := os.ReadFile(notes); strings.Contains(string(noted), "known vulnerabilities") != (c.code == 75) {
				t.Errorf("it noted as not checked: %q", noted)
			}
		})
	}
}

// CI passes without the internet, and does not hide what that has left out.
func TestCISaysWhatWasNotChecked(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	for _, name := range []string{"make", "apt-get", "chromium", "mypy", "node", "npm"} { // so that nothing is installed
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n[ \"$*\" != check ] || sh -c \"$CHECK\"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	listed, err := exec.CommandContext(t.Context(), "make", "-n", "-C", "..", "check").Output()
	if err != nil {
		t.Fatal(err)
	}
	var check string
	for line := range strings.Lines(string(listed)) {
		if strings.HasPrefix(line, "test/vulnerabilities.sh") {
			check = line
		}
	}
	for name, c := range map[string]struct {
		check string
		fails bool
		says  string
	}{
		"all":                      {":", false, "PASSED, all checked"},
		"no database":              {check, false, "PASSED, BUT 1 NOT CHECKED:\n  known vulnerabilities"},
		"a vulnerability is known": {strings.Replace(check, "test/vulnerabilities.sh", "(exit 3)", 1), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(within(t, time.Minute), "../.ci/run")
			cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "CHECK="+c.check, "GOVULNDB=https://database.invalid")
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails || !strings.Contains(string(out), c.says) || c.fails && strings.Contains(string(out), "PASSED") {
				t.Errorf("%v; want that it fails: %t, and that it says %q:\n%s", err, c.fails, c.says, out)
			}
		})
	}
}
