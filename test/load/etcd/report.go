package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"regent/test/load"
	"regent/test/proxy"
)

// The files of a report.
const (
	resultsFile = "results.json"
	reportFile  = "README.md"
	costFile    = "cost.md" // part of the report, if it exists
)

//go:embed README.tmpl
var page string

// readResult reads what was found before.
func readResult(dir string) (found Result, err error) {
	text, err := os.ReadFile(filepath.Join(dir, resultsFile))
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	return found, err
}

// write writes the report and the results that it is made from.
func (r Result) write(dir string) error {
	results, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	cost, err := os.ReadFile(filepath.Join(dir, costFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	report, err := r.report(string(cost))
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, resultsFile), append(results, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, reportFile), []byte(report), 0o644),
	)
}

// report is the page with the cost on other stores, which may be "".
func (r Result) report(cost string) (string, error) {
	text, err := r.execute(page, cost)
	return load.Wrap(text), err
}

// print writes the tables alone.
func (r Result) print(w io.Writer) error {
	const tables = `{{if .Goals}}{{template "goals" .}}{{end}}{{range .Contests}}{{template "contest" .}}{{end}}` +
		`{{range .Growth}}{{template "growth" .}}{{end}}{{with .Spanner}}{{range .Contests}}{{template "contest" .}}{{end}}{{end}}`
	text, err := r.execute(page+`{{define "tables"}}`+tables+`{{end}}`, "", "tables")
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	return err
}

func (r Result) execute(text, cost string, name ...string) (string, error) {
	t, err := template.New("page").Funcs(template.FuncMap{
		"number": number,
		"count":  func(n float64) string { return number(math.Round(n)) },
		"spread": spread,
		"join":   strings.Join,
		"sizes":  goalSizes,
		"calls":  func(calls map[string]int) string { return proxy.Calls(calls).String() },
		"round":  func(d time.Duration) time.Duration { return d.Round(time.Second) },
	}).Parse(text)
	if err != nil {
		return "", err
	}
	if len(name) > 0 {
		t = t.Lookup(name[0])
	}
	var b strings.Builder
	err = t.Execute(&b, struct {
		Result
		Cost string
	}{r, strings.TrimSpace(cost)})
	return b.String(), err
}

// number has three significant digits at most and no exponent.
func number(f float64) string {
	switch {
	case f < 0:
		return "-" + number(-f)
	case f >= 1e6:
		return fmt.Sprintf("%.2f M", f/1e6)
	case f >= 999.5:
		whole := int(math.Round(f))
		return fmt.Sprintf("%d,%03d", whole/1000, whole%1000)
	case f >= 99.95, f == math.Trunc(f):
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	case 0 < f && f < 0.01:
		return fmt.Sprintf("%.4f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

// spread is the median and, where they differ, the ends.
func spread(s Spread) string {
	if s.Least == s.Most {
		return number(s.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", number(s.Median), number(s.Least), number(s.Most))
}
