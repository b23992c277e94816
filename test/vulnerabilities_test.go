package test

import (
	"compress/gzip"
	"fmt"
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
	for name, c := range map[string]struct {
		database string
		code     int // govulncheck has 3 for what it finds
		says     string
	}{
		"one known":    {vulnerabilityDatabase(t, plantedVulnerability), 3, "GO-2026-9999"},
		"no such name": {"https://database.invalid", 75, "NOT CHECKED for known vulnerabilities"},
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
