package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"regent/test/load"
)

// The files of a report.
const (
	resultsFile = "results.json"
	reportFile  = "README.md"
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
	report, err := r.report()
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, resultsFile), append(results, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, reportFile), []byte(report), 0o644),
	)
}

// report returns the page.
func (r Result) report() (string, error) {
	t, err := template.New("page").Funcs(template.FuncMap{
		"number": number,
		"count":  func(n float64) string { return number(math.Round(n)) },
		"spread": spread,
		"join":   strings.Join,
		"sizes":  goalSizes,
		"round":  func(d time.Duration) time.Duration { return d.Round(time.Second) },
	}).Parse(page)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, r)
	return load.Wrap(strings.TrimSpace(b.String()) + "\n"), err
}

// number has three significant digits at most and no exponent.
func number(f float64) string {
	switch {
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

// spread returns the median and, where they differ, the ends.
func spread(s Spread) string {
	if s.Least == s.Most {
		return number(s.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", number(s.Median), number(s.Least), number(s.Most))
}
