package terraform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// Those who scrape /metrics by themselves have the module's alerts and charts as files, under the
// names that metrics have there. -update writes them.
func TestPrometheusAndGrafanaHaveTheModulesAlertsAndCharts(t *testing.T) {
	t.Parallel()
	p := newCheckout(t, "").plan(t, "", right, vars{"metric_names": "prometheus"})
	golden(t, repository+"/terraform/prometheus/rules.yaml", p.rules(t))
	golden(t, repository+"/terraform/grafana/dashboard.json", p.grafana(t))
}

var promQL = parser.NewParser(parser.Options{})

// rule is an alert as Prometheus reads it.
type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// rules are the alerts as promtool wants them.
func (p plan) rules(t *testing.T) string {
	t.Helper()
	var rules []rule
	for _, r := range p.main("google_monitoring_alert_policy") {
		condition := in(r.Values, "conditions", 0, "condition_prometheus_query_language")
		title := fmt.Sprint(in(r.Values, "conditions", 0, "display_name"))
		means, runbook, _ := strings.Cut(fmt.Sprint(in(r.Values, "documentation", 0, "content")), "\n\nWhat to look at, and what to do: ")
		_, name, _ := strings.Cut(runbook, "#")
		one := rule{
			Alert:       "Regent" + strings.ReplaceAll(titled(strings.ReplaceAll(name, "-", " ")), " ", ""),
			Expr:        bare(fmt.Sprint(in(condition, 0, "query"))),
			Labels:      map[string]string{"severity": strings.ToLower(fmt.Sprint(r.Values["severity"]))},
			Annotations: map[string]string{"summary": title, "description": means, "runbook_url": runbook},
		}
		if _, err := promQL.ParseExpr(one.Expr); err != nil {
			t.Errorf("%s: %v", one.Alert, err)
		}
		if seconds := fmt.Sprint(in(condition, 0, "duration")); seconds != "0s" {
			one.For = seconds
		}
		rules = append(rules, one)
	}
	slices.SortFunc(rules, func(a, b rule) int { return strings.Compare(a.Alert, b.Alert) })
	text := bytes.NewBufferString("# Made from ../alerts.tf by the tests of test/terraform: change that, and run them with -update.\n")
	err := yaml.NewEncoder(text).Encode(map[string]any{"groups": []any{map[string]any{"name": "regent", "rules": rules}}})
	require.NoError(t, err)
	return text.String()
}

// grafana is the dashboard as Grafana imports it.
func (p plan) grafana(t *testing.T) string {
	t.Helper()
	source := vars{"type": "prometheus", "uid": "${datasource}"}
	var panels []vars
	for i, w := range p.widgets(t) {
		var targets []vars
		for n, d := range w.XYChart.DataSets {
			query := bare(d.TimeSeriesQuery.PrometheusQuery)
			if _, err := promQL.ParseExpr(query); err != nil {
				t.Errorf("%s: %v", w.Title, err)
			}
			legend := regexp.MustCompile(`\$\{(\w+)\}`).ReplaceAllString(d.LegendTemplate, "{{$1}}")
			targets = append(targets, vars{"refId": string(rune('A' + n)), "expr": query, "legendFormat": legend})
		}
		panels = append(panels, vars{
			"id": i + 1, "type": "timeseries", "title": w.Title, "datasource": source, "targets": targets,
			"gridPos": vars{"x": 8 * (i % 3), "y": 8 * (i / 3), "w": 8, "h": 8},
		})
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(vars{
		"title": "Regent", "uid": "regent", "tags": []string{"regent"}, "schemaVersion": 39, "refresh": "30s",
		"time":       vars{"from": "now-6h", "to": "now"},
		"templating": vars{"list": []vars{{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}}},
		"panels":     panels,
	})
	require.NoError(t, err)
	return text.String()
}

var (
	quotedName  = regexp.MustCompile(`\{"(\w+)", `)
	quotedLabel = regexp.MustCompile(`"(\w+)"(=~?")`)
)

// bare is a query in the spelling that all versions of Prometheus read: name{label="value"}, and
// not {"name", "label"="value"}.
func bare(query string) string {
	return quotedLabel.ReplaceAllString(quotedName.ReplaceAllString(query, "$1{"), "$1$2")
}

// titled begins each word with a capital.
func titled(words string) string {
	return regexp.MustCompile(`\b[a-z]`).ReplaceAllStringFunc(words, strings.ToUpper)
}
