package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"

	"github.com/stretchr/testify/assert"

	"regent/leadership/telemetry"
)

func TestALogLineIsAsCloudLoggingReadsIt(t *testing.T) {
	t.Parallel()
	traced := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{0xab, 15: 1}, SpanID: trace.SpanID{0xcd, 7: 2}, TraceFlags: trace.FlagsSampled,
	}))
	where := map[string]any{
		"logging.googleapis.com/trace":         "projects/p/traces/ab000000000000000000000000000001",
		"logging.googleapis.com/spanId":        "cd00000000000002",
		"logging.googleapis.com/trace_sampled": true,
	}
	with := func(more map[string]any, to map[string]any) map[string]any {
		maps.Copy(to, more)
		return to
	}
	for name, c := range map[string]struct {
		log  func(*slog.Logger)
		want map[string]any
	}{
		"plain":   {func(l *slog.Logger) { l.Info("hello", "n", 1) }, map[string]any{"severity": "INFO", "message": "hello", "n": 1.0}},
		"warning": {func(l *slog.Logger) { l.Warn("hm") }, map[string]any{"severity": "WARNING", "message": "hm"}},
		"between": {func(l *slog.Logger) { l.Log(t.Context(), slog.LevelWarn+1, "hm") }, map[string]any{"severity": "WARNING", "message": "hm"}},
		"error":   {func(l *slog.Logger) { l.Error("oh") }, map[string]any{"severity": "ERROR", "message": "oh"}},
		"debug":   {func(l *slog.Logger) { l.Debug("no") }, nil},
		"traced":  {func(l *slog.Logger) { l.InfoContext(traced, "hello") }, with(where, map[string]any{"severity": "INFO", "message": "hello"})},
		"traced in a group": {
			func(l *slog.Logger) {
				l.With("a", 1).WithGroup("g").With("b", 2).InfoContext(traced, "hello", "msg", 3)
			},
			with(where, map[string]any{"severity": "INFO", "message": "hello", "a": 1.0, "g": map[string]any{"b": 2.0, "msg": 3.0}}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var line bytes.Buffer
			c.log(slog.New(telemetry.CloudLogging(&line, "p", nil)))
			var got map[string]any
			if err := json.Unmarshal(line.Bytes(), &got); err != nil && c.want != nil {
				t.Fatalf("%v: %s", err, line.String())
			}
			if _, ok := got["time"]; ok != (c.want != nil) {
				t.Errorf("the time is there: %t", ok)
			}
			delete(got, "time")
			assert.Empty(t, gocmp.Diff(c.want, got), "-want +got")
		})
	}
}

func TestATraceWithoutAProjectIsItsID(t *testing.T) {
	t.Parallel()
	var line bytes.Buffer
	ctx := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}}))
	slog.New(telemetry.CloudLogging(&line, "", nil)).InfoContext(ctx, "hello")
	if !bytes.Contains(line.Bytes(), []byte(`"logging.googleapis.com/trace":"01000000000000000000000000000000"`)) {
		t.Error(line.String())
	}
}

func TestDerivedLoggersDoNotShareAttributes(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}}))
	origin := slog.New(telemetry.CloudLogging(&lines, "", nil)).With("a", 1).With("b", 2).With("c", 3)
	one := origin.With("one", true)
	origin.With("other", true)
	one.InfoContext(ctx, "hello")
	if !bytes.Contains(lines.Bytes(), []byte(`"one":true`)) || bytes.Contains(lines.Bytes(), []byte("other")) {
		t.Error(lines.String())
	}
}
