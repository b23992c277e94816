package export_test

import (
	"bytes"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric/noop"

	"regent/leadership/telemetry/export"
)

func TestAWrongVariableIsRefusedByName(t *testing.T) {
	t.Parallel()
	endpoint := "OTEL_EXPORTER_OTLP_ENDPOINT"
	for _, c := range []struct {
		env  map[string]string
		says string
	}{
		{map[string]string{endpoint: "collector:4317"}, `OTEL_EXPORTER_OTLP_ENDPOINT takes http://HOST:PORT or https://HOST:PORT, not "collector:4317"`},
		{map[string]string{endpoint: "ftp://collector"}, endpoint},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://%zz"}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"},
		{map[string]string{endpoint: "http://c:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, `OTEL_EXPORTER_OTLP_PROTOCOL takes grpc or http/protobuf, not "http/json"`},
		{map[string]string{endpoint: "http://c:1", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "udp"}, "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"},
		{map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER"},
		{map[string]string{"OTEL_METRICS_EXPORTER": "prometheus"}, "OTEL_METRICS_EXPORTER"},
		{map[string]string{"OTEL_SDK_DISABLED": "yes"}, "OTEL_SDK_DISABLED"},
		{map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "10s"}, "OTEL_EXPORTER_OTLP_TIMEOUT takes milliseconds"},
		{map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": "zstd"}, "OTEL_EXPORTER_OTLP_COMPRESSION"},
		{map[string]string{"OTEL_EXPORTER_OTLP_INSECURE": "1"}, "OTEL_EXPORTER_OTLP_INSECURE"},
		{map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": "/no/such/file"}, "OTEL_EXPORTER_OTLP_CERTIFICATE"},
		{map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "api-key"}, "OTEL_EXPORTER_OTLP_HEADERS takes KEY=VALUE"},
		{map[string]string{"OTEL_METRIC_EXPORT_INTERVAL": "0"}, "OTEL_METRIC_EXPORT_INTERVAL"},
		{map[string]string{"OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, "OTEL_BSP_MAX_QUEUE_SIZE"},
		{map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "a=b,c"}, "OTEL_RESOURCE_ATTRIBUTES"},
		{map[string]string{"OTEL_TRACES_SAMPLER": "sometimes"}, "OTEL_TRACES_SAMPLER"},
		{map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "NaN"}, "OTEL_TRACES_SAMPLER_ARG takes a number from 0 to 1"},
		{map[string]string{"OTEL_TRACES_SAMPLER_ARG": "0.5"}, "OTEL_TRACES_SAMPLER_ARG"},
		{map[string]string{endpoint: "http://telemetry.googleapis.com"}, `takes https://telemetry.googleapis.com`},
		{map[string]string{endpoint: "https://telemetry.googleapis.com", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, "OTEL_EXPORTER_OTLP_PROTOCOL takes grpc"},
	} {
		p, err := export.Setup(t.Context(), export.Config{Env: c.env})
		if p != nil || err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v; want one line with %s", c.env, err, c.says)
		}
	}
}

func TestAWrongHeaderIsNotRepeatedBecauseItMayBeSecret(t *testing.T) {
	t.Parallel()
	_, err := export.Setup(t.Context(), export.Config{Env: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "s3cret"}})
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Error(err)
	}
}

func TestNothingIsExportedUnlessConfigured(t *testing.T) { // alone, for it counts goroutines
	before := runtime.NumGoroutine()
	for _, env := range []map[string]string{
		nil,
		{"OTEL_SERVICE_NAME": "regent"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"},
	} {
		p, err := export.Setup(t.Context(), export.Config{Env: env})
		require.NoError(t, err)
		if _, ok := p.Meters.(noop.MeterProvider); !ok || p.Prometheus != nil {
			t.Errorf("%v: there is a %T, and Prometheus is %v", env, p.Meters, p.Prometheus)
		}
		assert.NoError(t, p.Shutdown(t.Context()))
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, %d before", after, before)
	}
}

func TestExportErrorsAreLoggedOnceAMinuteAtMost(t *testing.T) { // alone, for the handler is the process's
	var log bytes.Buffer
	p, err := export.Setup(t.Context(), export.Config{})
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		p.Adopt(slog.New(slog.NewTextHandler(&log, nil)))
		for range 100 {
			otel.Handle(errors.New("the collector is gone"))
			time.Sleep(time.Second)
		}
	})
	if n := strings.Count(log.String(), "the collector is gone"); n != 2 {
		t.Errorf("%d lines in 100 s, want 2:\n%s", n, log.String())
	}
	if otel.GetTracerProvider() != p.Tracers {
		t.Error("libraries do not get the tracers")
	}
}
