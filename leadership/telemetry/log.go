package telemetry

import (
	"context"
	"io"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// CloudLogging returns a handler that writes JSON lines for Google's Cloud Logging: severity,
// message, time and, with the context of a traced request, trace and span. project is the project
// that keeps the traces; with "" only the trace's id is written. level is the lowest level that is
// written; nil means slog.LevelInfo.
func CloudLogging(w io.Writer, project string, level slog.Leveler) slog.Handler {
	h := slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: cloudNames})
	prefix := ""
	if project != "" {
		prefix = "projects/" + project + "/traces/"
	}
	return &logHandler{Handler: h, plain: h, prefix: prefix}
}

func cloudNames(groups []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration { // instead of a number of nanoseconds
		a.Value = slog.StringValue(a.Value.Duration().Round(time.Millisecond).String())
	}
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.MessageKey:
		a.Key = "message"
	case slog.LevelKey:
		level, _ := a.Value.Any().(slog.Level)
		a = slog.String("severity", severity(level))
	}
	return a
}

// severity returns Cloud Logging's name of the level, or of the next lower one that has a name.
func severity(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "ERROR"
	case l >= slog.LevelWarn:
		return "WARNING"
	case l >= slog.LevelInfo:
		return "INFO"
	}
	return "DEBUG"
}

// logHandler writes the trace at the top level, whatever the group of the logger.
type logHandler struct {
	slog.Handler
	plain  slog.Handler                      // without the attributes of With
	with   []func(slog.Handler) slog.Handler // in order
	prefix string                            // of a trace
}

func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return h.Handler.Handle(ctx, r)
	}
	traced := h.plain.WithAttrs([]slog.Attr{
		slog.String("logging.googleapis.com/trace", h.prefix+span.TraceID().String()),
		slog.String("logging.googleapis.com/spanId", span.SpanID().String()),
		slog.Bool("logging.googleapis.com/trace_sampled", span.IsSampled()),
	})
	for _, with := range h.with {
		traced = with(traced)
	}
	return traced.Handle(ctx, r)
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.and(func(to slog.Handler) slog.Handler { return to.WithAttrs(attrs) })
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	return h.and(func(to slog.Handler) slog.Handler { return to.WithGroup(name) })
}

func (h *logHandler) and(do func(slog.Handler) slog.Handler) slog.Handler {
	with := append(h.with[:len(h.with):len(h.with)], do)
	return &logHandler{Handler: do(h.Handler), plain: h.plain, with: with, prefix: h.prefix}
}
