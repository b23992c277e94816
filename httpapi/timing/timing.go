// Package timing times and traces HTTP requests under the routes of the API. The metrics are those
// that OpenTelemetry defines for HTTP servers. A door beside the API has two routes: its path, such
// as /apis, and everything below it, /apis/*.
package timing

import (
	"cmp"
	"net/http"
	"regexp"
	"strings"

	"github.com/go-chi/chi/v5"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"regent/leadership/wire"
)

// Handler returns the handler with its requests timed and traced. api, which may be wrapped by the
// handler, finds the route of a request.
//
// A request continues its caller's trace (header traceparent), even if nothing is exported, if
// verified returns true. Any other request begins a trace with a link to the caller's, so that an
// unknown caller cannot decide which of its requests are sampled. Streams and health checks are
// neither timed nor traced.
func Handler(meters metric.MeterProvider, tracers trace.TracerProvider, api, handler http.Handler, verified func(*http.Request) bool) http.Handler {
	_, noMeters := meters.(noopmetric.MeterProvider)
	_, noTracers := tracers.(nooptrace.TracerProvider)
	if noMeters && noTracers {
		return continued(handler)
	}
	routes := routesOf(api)
	traced := otelhttp.NewHandler(handler, "", otelhttp.WithMeterProvider(meters), otelhttp.WithTracerProvider(tracers),
		otelhttp.WithPropagators(propagation.TraceContext{}), otelhttp.WithServerName(server),
		otelhttp.WithPublicEndpointFn(func(r *http.Request) bool {
			return trace.SpanContextFromContext(r.Context()).IsValid() && !verified(r)
		}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route := routes.of(r)
		switch {
		case strings.HasPrefix(route.path, "/health/"):
			handler.ServeHTTP(w, r)
		case route.streamed(r):
			continued(handler).ServeHTTP(w, r)
		default:
			r = r.WithContext(r.Context()) // a copy, which the next line changes
			r.Pattern = route.path
			traced.ServeHTTP(w, r)
		}
	})
}

// continued returns the handler with the trace of its caller in the context.
func continued(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header["Traceparent"] != nil {
			r = r.WithContext(propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header)))
		}
		handler.ServeHTTP(w, r)
	})
}

// server replaces the server's address in labels, where otelhttp would write the header Host: a
// caller can fill that with anything.
const server = "regent:80"

// route is the path of a route, and the kind of its answers: streams, documents, or both.
type route struct {
	path               string
	streams, documents bool
	door               bool // only the door knows the paths below this one
}

// streamed reports whether the reply is a stream, which may last for minutes.
func (r route) streamed(request *http.Request) bool {
	if r.door && request.URL.RawQuery != "" {
		if watch := request.URL.Query().Get("watch"); watch == "true" || watch == "1" {
			return true
		}
	}
	asked := strings.Contains(strings.Join(request.Header.Values("Accept"), ","), wire.StreamType)
	return request.Method == http.MethodGet && r.streams && (asked || !r.documents)
}

// routes finds the route of a request before the router does: otelhttp reads it from
// http.Request.Pattern, which chi does not set.
type routes struct {
	router    chi.Routes
	byPattern map[string]route // of the router
}

// constraint is the expression that restricts a parameter in a router's pattern.
var constraint = regexp.MustCompile(`\{(\w+):[^}]*\}`)

func routesOf(api http.Handler) routes {
	rs := routes{byPattern: map[string]route{}}
	rs.router, _ = api.(chi.Routes)
	if rs.router == nil {
		return rs
	}
	for _, one := range rs.router.Routes() {
		r := route{path: constraint.ReplaceAllString(one.Pattern, "{$1}")}
		if strings.HasSuffix(r.path, "/*") {
			r.door, r.streams, r.documents = true, true, true
		}
		for _, row := range wire.Verbs() {
			if row.Path == r.path && row.Method == http.MethodGet {
				r.streams = r.streams || row.Type == wire.StreamType
				r.documents = r.documents || row.Type != wire.StreamType
			}
		}
		rs.byPattern[one.Pattern] = r
	}
	return rs
}

// of returns the route of a request, with an empty path if there is none.
func (rs routes) of(r *http.Request) route {
	if rs.router == nil {
		return route{}
	}
	path, method := cmp.Or(r.URL.RawPath, r.URL.Path), r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return rs.byPattern[rs.router.Find(chi.NewRouteContext(), method, path)]
}
