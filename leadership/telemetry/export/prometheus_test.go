package export_test

import (
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	model "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	promnames "github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership/telemetry"
	"regent/leadership/telemetry/export"
)

func scrape(t *testing.T, p *export.Pipeline) (text string, families map[string]*model.MetricFamily) {
	t.Helper()
	w := httptest.NewRecorder()
	p.Prometheus.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Fatalf("%d %s: %s", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	text = w.Body.String()
	parser := expfmt.NewTextParser(promnames.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return text, families
}

func TestMetricsAreAsPrometheusWantsThem(t *testing.T) {
	p, err := export.Setup(t.Context(), export.Config{Prometheus: true, Version: "1.2.3", Instance: "i-1"})
	require.NoError(t, err)
	use(t, p)
	text, families := scrape(t, p)
	for name, f := range families {
		if !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") { // Prometheus' own
			lint(t, name, f)
		}
	}
	series := make(map[string]bool)
	for line := range strings.Lines(text) {
		name, _, ok := strings.Cut(line, " ")
		if strings.HasPrefix(line, "#") || !ok {
			continue
		}
		if labels, value, ok := strings.Cut(line, "} "); ok {
			name, _ = labels, value
		}
		assert.False(t, series[name], "the series %s comes twice", name)
		series[name] = true
	}
	for _, m := range telemetry.Catalogue() {
		if name := m.Prometheus(); families[name] == nil && !strings.HasPrefix(name, "regent_election_") && !slices.Contains([]string{"regent.cache.reads", "regent.events.unannounced.age", "regent.events.troubles", "regent.renewals.stretch", "regent.callers.unverified", "regent.ballots.duration"}, m.Name) {
			t.Errorf("%s is not there as %s", m.Name, name)
		}
	}
	for _, series := range []string{
		`regent_leadership_changes_total{type="acquired"} 2`, `regent_lease_contention_total{reason="held"} 1`, `regent_elections{state="vacant"} 1`,
		`regent_store_duration_seconds_count{op="renew",outcome="ok"} 1`, `regent_leadership_splitbrain_total{op="renew"} 0`,
		`http_server_request_duration_seconds_count{`, "\ngo_goroutines ", "\nprocess_resident_memory_bytes ", "\nprocess_open_fds ",
	} {
		assert.Contains(t, text, series, "%s is missing in\n%s", series, text)
	}
	for _, secret := range []string{secretKey, `"ann"`, `"jobs"`, `"bob"`} {
		assert.NotContains(t, text, secret, "%s is in /metrics", secret)
	}
}

var (
	goodName  = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	otherUnit = regexp.MustCompile(`_(milliseconds|ms|minutes|hours|kilobytes|megabytes|kib|mib|percent)(_|$)`)
)

// lint is what promtool check metrics looks at.
func lint(t *testing.T, name string, f *model.MetricFamily) {
	t.Helper()
	wrong := func(format string, args ...any) { t.Errorf("%s: %s", name, fmt.Sprintf(format, args...)) }
	if f.GetHelp() == "" {
		wrong("no HELP")
	}
	if !goodName.MatchString(name) || otherUnit.MatchString(name) {
		wrong("not a good name, or not a base unit")
	}
	if total := strings.HasSuffix(name, "_total"); total != (f.GetType() == model.MetricType_COUNTER) {
		wrong("a %s", f.GetType())
	}
	if f.GetType() == model.MetricType_UNTYPED {
		wrong("no TYPE")
	}
	for _, suffix := range []string{"_count", "_sum", "_bucket", "_info"} {
		if strings.HasSuffix(name, suffix) && name != "target_info" {
			wrong("the suffix %s is another's", suffix)
		}
	}
	for _, m := range f.Metric {
		for _, l := range m.Label {
			if !goodName.MatchString(l.GetName()) || l.GetName() == "le" || l.GetName() == "quantile" {
				wrong("label %s", l.GetName())
			}
		}
	}
}
