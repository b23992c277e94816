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

// measures is what serve tells of itself: a log, and metrics and traces on their way to whoever wants them.
type measures struct {
	*telemetry.Metrics
	log      *slog.Logger
	pipeline *export.Pipeline
	listener net.Listener // for Prometheus; nil if it does not ask
	server   http.Server
}

// openMeasures comes before all that is measured.
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
	if s.metricsListen == "" {
		return m, nil
	}
	if m.listener, err = net.Listen("tcp", s.metricsListen); err != nil {
		return nil, fmt.Errorf("%w; choose another address with --metrics-listen", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", pipeline.Prometheus)
	m.server = http.Server{Handler: mux, ReadTimeout: metricsTimeout, WriteTimeout: metricsTimeout, ErrorLog: slog.NewLogLogger(m.log.Handler(), slog.LevelWarn)}
	httpapi.LimitConnections(&m.server, metricsConnections)
	m.log.Info("showing metrics", "address", m.listener.Addr().String())
	return m, nil
}

const (
	metricsTimeout     = 10 * time.Second
	metricsConnections = 16 // of the files that httpapi.Server leaves
	// flushTimeout is for what was measured last. Of the 10 s that Cloud Run grants it is the last.
	flushTimeout = time.Second
)

// run answers Prometheus until ctx ends.
func (m *measures) run(ctx context.Context) {
	if m.listener == nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { m.server.Close() })
	defer stop()
	if err := m.server.Serve(m.listener); !errors.Is(err, http.ErrServerClosed) {
		m.log.Error("metrics are not shown any more", "reason", err)
	}
}

// close sends what was measured last.
func (m *measures) close() {
	if m.listener != nil {
		m.listener.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := m.pipeline.Shutdown(ctx); err != nil {
		m.log.Warn("not all that was measured could be sent", "reason", err)
	}
}
