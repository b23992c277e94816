package terraform

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// alerts says when each alert fires by default: testdata/alerts.json, which other tests may read.
func (p plan) alerts(t *testing.T) string {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, json.Indent(&text, p.outputs["alerts"], "", "  "))
	return unescaped.Replace(text.String()) + "\n"
}

// unescaped writes the characters that JSON need not escape as they are.
var unescaped = strings.NewReplacer(`\u003e`, ">", `\u003c`, "<", `\u0026`, "&")

// runbook is the page that each alert links to.
const runbook = "cmd/regent/TROUBLESHOOTING.md"

// pointsToTheRunbook checks that each alert has an entry of the runbook.
func (p plan) pointsToTheRunbook(t *testing.T) {
	t.Helper()
	sections := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(read(t, repository+"/"+runbook), -1) {
		sections[anchor(heading[1])] = true
	}
	alerts := 0
	for _, r := range p.main("google_monitoring_alert_policy") {
		alerts++
		content, _ := in(r.Values, "documentation", 0, "content").(string)
		_, section, found := strings.Cut(content, runbook+"#")
		if !found || !sections[section] {
			t.Errorf("%s points to an entry that the runbook has not: %s", r.Address, content)
		}
		query, _ := in(r.Values, "conditions", 0, "condition_prometheus_query_language", 0, "query").(string)
		if !strings.Contains(query, `"job"="regent"`) {
			t.Errorf("%s looks at other services too: %s", r.Address, query)
		}
	}
	if alerts != 19 {
		t.Errorf("there are %d alerts", alerts)
	}
	if !sections["unreachable"] {
		t.Error("the runbook has no entry for the alert of the uptime check")
	}
}

// anchor is the link to a heading, as it is made on the page.
func anchor(heading string) string {
	heading = regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(heading, " ", "-")
}

// widget is a chart of the dashboard.
type widget struct {
	Title   string
	XYChart struct {
		DataSets []struct {
			LegendTemplate  string
			TimeSeriesQuery struct{ PrometheusQuery string }
		}
	}
}

func (p plan) widgets(t *testing.T) []widget {
	t.Helper()
	text, _ := p.one(t, "google_monitoring_dashboard.main").Values["dashboard_json"].(string)
	var dashboard struct{ GridLayout struct{ Widgets []widget } }
	require.NoError(t, json.Unmarshal([]byte(text), &dashboard))
	return dashboard.GridLayout.Widgets
}

// spelling is a row of metrics.tf.
var spelling = regexp.MustCompile(`otlp = "([^"]+)", prometheus = "([^"]+)"`)

// showsEachMetric checks that the dashboard is valid JSON and has every named metric.
func (p plan) showsEachMetric(t *testing.T) {
	t.Helper()
	var queries strings.Builder
	for _, w := range p.widgets(t) {
		for _, d := range w.XYChart.DataSets {
			queries.WriteString(d.TimeSeriesQuery.PrometheusQuery + "\n")
		}
	}
	for _, s := range spelling.FindAllStringSubmatch(read(t, repository+"/terraform/metrics.tf"), -1) {
		if !strings.Contains(queries.String(), `{"`+s[1]) {
			t.Errorf("the dashboard does not show %s", s[1])
		}
	}
}

func TestMetricsHavePrometheusNames(t *testing.T) {
	t.Parallel()
	spellings := spelling.FindAllStringSubmatch(read(t, repository+"/terraform/metrics.tf"), -1)
	if len(spellings) < 15 {
		t.Fatalf("found %d metrics only", len(spellings))
	}
	for _, s := range spellings {
		bare := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(s[2], "_total"), "_seconds"), "_bytes")
		if bare != strings.ReplaceAll(s[1], ".", "_") {
			t.Errorf("%s is spelt %s", s[1], s[2])
		}
	}
}
