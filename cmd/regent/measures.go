package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"regent/httpapi"
	"regent/leadership/telemetry"
	"regent/leadership/telemetry/export"
)

// measures are the log of serve, its metrics and its traces.
type measures struct {
	*telemetry.Metrics
	log      *slog.Logger
	pipeline *export.Pipeline
	listener net.Listener // for Prometheus; nil without --metrics-listen
	server   http.Server
}

// openMeasures must be called before the parts to be measured are created.
func (c *cli) openMeasures(ctx context.Context, s serviceSettings, instance string) (*measures, error) {
	pipeline, err := export.Setup(ctx, export.Config{
		Env: c.env, Version: currentBuild().Version, Instance: instance, Prometheus: s.metricsListen != "",
	})
	if err != nil {
		return nil, usageError{err}
	}
	m := &measures{log: newLogTo(c.err, isTerminal(c.err), pipeline.Project), pipeline: pipeline}
	pipeline.Adopt(m.log)
	if m.Metrics, err = telemetry.New(pipeline.Meters, pipeline.Tracers); err != nil {
		return nil, err
	}
	if len(s.named) > 0 {
		if err := m.ByName(s.named); err != nil {
			return nil, err
		}
		if m.Idle() {
			m.log.Warn("--metrics-elections has no effect: metrics go nowhere; give --metrics-listen, or set OTEL_EXPORTER_OTLP_ENDPOINT")
		}
	}
	if s.metricsListen == "" {
		return m, nil
	}
	if m.listener, err = net.Listen("tcp", s.metricsListen); err != nil {
		return nil, fmt.Errorf("%w; choose another address with --metrics-listen", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", pipeline.Prometheus)
	handler := http.Handler(mux)
	if answers := s.answers(); answers != nil && !s.metricsExposed() {
		handler = onlyFor(answers, mux)
	}
	m.server = http.Server{Handler: handler, ReadTimeout: metricsTimeout, WriteTimeout: metricsTimeout, ErrorLog: slog.NewLogLogger(m.log.Handler(), slog.LevelWarn)}
	httpapi.LimitConnections(&m.server, metricsConnections, func() {})
	m.log.Info("showing metrics", "address", m.listener.Addr().String())
	return m, nil
}

// onlyFor refuses requests for hosts under which the service does not answer, as of pages that use
// DNS rebinding.
func onlyFor(answers func(host string) bool, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answers(r.Host) {
			http.Error(w, "metrics are shown under IP addresses, localhost and the names of --allow-host only", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

const (
	metricsTimeout     = 10 * time.Second
	metricsConnections = 16 // httpapi.Server leaves that many open files free
	// flushTimeout is for the last measurements. It is the last of the 10 s that Cloud Run grants.
	flushTimeout = time.Second
)

func (m *measures) run(ctx context.Context) {
	if m.listener == nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { m.server.Close() })
	defer stop()
	if err := m.server.Serve(m.listener); !errors.Is(err, http.ErrServerClosed) {
		m.log.Error("metrics are no longer served", "reason", err)
	}
}

func (m *measures) close() {
	if m.listener != nil {
		m.listener.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := m.pipeline.Shutdown(ctx); err != nil {
		m.log.Warn("some measurements could not be sent", "reason", err)
	}
}
