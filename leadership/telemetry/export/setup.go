package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	prometheusexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"
)

// Config says what to export, and where.
type Config struct {
	// Env must be the environment of this process: OpenTelemetry's libraries read that too.
	Env map[string]string
	// Version and Instance are those of this process.
	Version, Instance string
	// Prometheus enables Pipeline.Prometheus.
	Prometheus bool
}

// Pipeline exports metrics and spans.
type Pipeline struct {
	Meters  metric.MeterProvider
	Tracers trace.TracerProvider
	// Prometheus serves all metrics in Prometheus' format; nil unless the Config enables it.
	Prometheus http.Handler
	// Project is the Google Cloud project that keeps the traces, if it is known.
	Project string

	ends []func(context.Context) error
}

// Setup returns a pipeline. If nothing is exported, its providers do nothing and it has no
// goroutine. A collector that is out of reach is no error: measurements are dropped, and Adopt's
// log says so.
//
// Errors say which variable is wrong, or that there are no credentials for Google's collector.
func Setup(ctx context.Context, c Config) (*Pipeline, error) {
	s, err := readSettings(c.Env)
	if err != nil {
		return nil, err
	}
	p := &Pipeline{Meters: noopmetric.NewMeterProvider(), Tracers: nooptrace.NewTracerProvider(), Project: c.Env["GOOGLE_CLOUD_PROJECT"]}
	if !s.traces.on && !s.metrics.on && !c.Prometheus {
		return p, nil
	}
	if err := p.open(ctx, c, s); err != nil {
		return nil, errors.Join(err, p.Shutdown(ctx))
	}
	return p, nil
}

func (p *Pipeline) open(ctx context.Context, c Config, s settings) error {
	dial, project, err := s.dialing(ctx)
	if err != nil {
		return err
	}
	if p.Project = cmp.Or(p.Project, project); p.Project == "" && s.google() && !strings.Contains(c.Env["OTEL_RESOURCE_ATTRIBUTES"], "gcp.project_id=") {
		return fmt.Errorf("%s needs a project: set GOOGLE_CLOUD_PROJECT", googleHost)
	}
	res, err := newResource(ctx, c, p.Project)
	if err != nil {
		return err
	}
	if s.traces.on {
		exporter, err := spanExporter(ctx, s.traces, dial)
		if err != nil {
			return fmt.Errorf("traces cannot be exported: %w", err)
		}
		provider := sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithBatcher(exporter))
		p.Tracers, p.ends = provider, append(p.ends, provider.Shutdown)
	}
	readers, err := p.readers(ctx, c, s.metrics, dial)
	if err == nil && len(readers) > 0 {
		provider := sdkmetric.NewMeterProvider(append(readers, sdkmetric.WithResource(res))...)
		p.Meters, p.ends = provider, append(p.ends, provider.Shutdown)
	}
	return err
}

func (p *Pipeline) readers(ctx context.Context, c Config, s signal, dial dialOptions) (readers []sdkmetric.Option, err error) {
	if c.Prometheus {
		reader, err := p.serve()
		if err != nil {
			return nil, fmt.Errorf("metrics cannot be shown to Prometheus: %w", err)
		}
		readers = append(readers, sdkmetric.WithReader(reader))
	}
	if s.on {
		exporter, err := metricExporter(ctx, s, dial)
		if err != nil {
			return nil, fmt.Errorf("metrics cannot be exported: %w", err)
		}
		readers = append(readers, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)))
	}
	return readers, nil
}

// serve returns the reader whose metrics Prometheus gets. It also adds the metrics of Go and of the
// operating system about the process: go_* and process_*.
func (p *Pipeline) serve() (sdkmetric.Reader, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := prometheusexporter.New(prometheusexporter.WithRegisterer(registry), prometheusexporter.WithoutScopeInfo())
	if err != nil {
		return nil, err
	}
	p.Prometheus = promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
	return reader, nil
}

// Adopt makes the tracers global, for libraries such as the clients of Google Cloud, and logs
// errors of exporting once a minute at most. Call it once, from main, before such clients are made.
func (p *Pipeline) Adopt(log *slog.Logger) {
	otel.SetTracerProvider(p.Tracers)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	otel.SetErrorHandler(&complaints{log: log})
}

// complaints logs errors, at most once a minute.
type complaints struct {
	log *slog.Logger

	mu   sync.Mutex // guards last
	last time.Time
}

func (c *complaints) Handle(err error) {
	c.mu.Lock()
	again := !c.last.IsZero() && time.Since(c.last) < time.Minute
	if !again {
		c.last = time.Now()
	}
	c.mu.Unlock()
	if !again {
		c.log.Warn("telemetry is not exported", "cause", err)
	}
}

// Shutdown sends everything that has not been sent, until ctx ends. Do not measure anything after
// it.
func (p *Pipeline) Shutdown(ctx context.Context) error {
	failures := make([]error, len(p.ends))
	var all sync.WaitGroup
	for i, end := range p.ends {
		all.Go(func() { failures[i] = end(ctx) })
	}
	all.Wait()
	return errors.Join(failures...)
}
