package telemetry

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/go-chi/chi/v5"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"

	"regent/leadership/wire"
)

// HTTP is the handler with its requests timed and traced under the routes of the API, which is asked where a request belongs and may stand behind
// the handler. A request goes on in its caller's trace (traceparent), also if nothing is exported.
//
// Streams are counted while they are open, and neither timed nor traced; health checks are none of it.
func (m *Metrics) HTTP(api, handler http.Handler) http.Handler {
	if m.idle {
		return within(handler)
	}
	routes := routesOf(api)
	traced := otelhttp.NewHandler(handler, "", otelhttp.WithMeterProvider(m.meters), otelhttp.WithTracerProvider(m.tracers),
		otelhttp.WithPropagators(propagation.TraceContext{}), otelhttp.WithServerName(server))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route := routes.of(r)
		switch {
		case strings.HasPrefix(route, "/health/"):
			handler.ServeHTTP(w, r)
		case streams(route, r):
			m.watchers.Add(1)
			defer m.watchers.Add(-1)
			within(handler).ServeHTTP(w, r)
		default:
			r = r.WithContext(r.Context()) // a copy, for the pattern is written
			r.Pattern = route
			traced.ServeHTTP(w, r)
		}
	})
}

// within is the handler in its caller's trace.
func within(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header["Traceparent"] != nil {
			r = r.WithContext(propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header)))
		}
		handler.ServeHTTP(w, r)
	})
}

// server stands for the address and the port of the server, which would be what the caller writes into the header Host.
const server = "regent:80"

// streams says whether the answer may last for minutes.
func streams(route string, r *http.Request) bool {
	if r.Method != http.MethodGet || !strings.HasSuffix(route, wire.Events) {
		return false
	}
	return route == wire.PathEvents || strings.Contains(strings.Join(r.Header.Values("Accept"), ","), wire.StreamType)
}

// routes knows the route of a request before the router does: otelhttp looks for it where chi does not put it.
type routes struct {
	router chi.Routes
	names  map[string]string // of the patterns
}

// expression is that of a parameter in a pattern.
var expression = regexp.MustCompile(`\{(\w+):[^}]*\}`)

func routesOf(api http.Handler) routes {
	r := routes{names: make(map[string]string)}
	r.router, _ = api.(chi.Routes)
	if r.router == nil {
		return r
	}
	for _, route := range r.router.Routes() {
		r.names[route.Pattern] = expression.ReplaceAllString(route.Pattern, "{$1}")
	}
	return r
}

// of is "" for a path that leads nowhere.
func (rs routes) of(r *http.Request) string {
	if rs.router == nil {
		return ""
	}
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return rs.names[rs.router.Find(chi.NewRouteContext(), method, path)]
}
