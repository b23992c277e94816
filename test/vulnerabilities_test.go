package test

import (
	"compress/gzip"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
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
		fails    bool
		says     string
	}{
		"none known":            {vulnerabilityDatabase(t, clean), false, "No vulnerabilities found"},
		"one known":             {vulnerabilityDatabase(t, plantedVulnerability), true, "GO-2026-9999"},
		"no such name":          {"https://database.invalid", false, "NOT CHECKED for known vulnerabilities"},
		"it never answers":      {"http://" + silent.Addr().String(), false, "NOT CHECKED for known vulnerabilities"},
		"it is not there":       {vulnerabilityDatabase(t, nil), false, "NOT CHECKED for known vulnerabilities"},
		"it lacks half of that": {vulnerabilityDatabase(t, map[string]string{"/index/db.json": "{}"}), true, "vulndb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(within(t, 3*time.Minute), "./vulnerabilities.sh", "./leadership/boottime")
			cmd.Env = append(os.Environ(), "GOVULNDB="+c.database)
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails || !strings.Contains(string(out), c.says) {
				t.Errorf("%v; want that it fails: %t, and that it says %q:\n%s", err, c.fails, c.says, out)
			}
		})
	}
}
