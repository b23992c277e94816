package timing_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"regent/httpapi"
	"regent/httpapi/timing"
	"regent/leadership/instance"
	"regent/leadership/telemetry"
	"regent/store/memory"
)

// edge is a server whose requests are measured.
type edge struct {
	*testing.T
	url    string
	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
}

// newEdge starts an edge with that time limit for answers; 0 means the default.
func newEdge(t *testing.T, answer time.Duration) *edge {
	t.Helper()
	e := &edge{T: t, reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	meters, tracers := sdkmetric.NewMeterProvider(sdkmetric.WithReader(e.reader)), sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(e.spans))
	m, err := telemetry.New(meters, tracers)
	require.NoError(t, err)
	i, err := instance.New(instance.Config{Store: m.Store(memory.New(memory.Config{})), Name: "a", Alone: true})
	require.NoError(t, err)
	door := httpapi.Door{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })}
	api := httpapi.New(httpapi.Config{Service: instance.Guard(i, m), Doors: map[string]httpapi.Door{"/apis": door, "/": door}})
	timed := timing.Handler(meters, tracers, api, api, func(r *http.Request) bool { return r.Header.Get("Authorization") != "" })
	server := httptest.NewUnstartedServer(timed)
	server.Config = httpapi.Server(timed, nil)
	server.Config.WriteTimeout = cmp.Or(answer, server.Config.WriteTimeout)
	server.Start()
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

func (e *edge) do(method, path, body string, header ...string) *http.Response {
	e.Helper()
	r, err := http.NewRequestWithContext(e.Context(), method, e.url+path, strings.NewReader(body))
	require.NoError(e, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	res, err := http.DefaultClient.Do(r)
	require.NoError(e, err)
	e.Cleanup(func() { res.Body.Close() })
	return res
}

// series returns the series of the duration of requests.
func (e *edge) series() (all []string) {
	e.Helper()
	for _, m := range e.collect() {
		if d, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == "http.server.request.duration" {
			for _, p := range d.DataPoints {
				route, _ := p.Attributes.Value("http.route")
				method, _ := p.Attributes.Value("http.request.method")
				status, _ := p.Attributes.Value("http.response.status_code")
				all = append(all, fmt.Sprint(method.AsString(), " ", route.AsString(), " ", status.AsInt64()))
			}
		}
	}
	slices.Sort(all)
	return all
}

func (e *edge) collect() []metricdata.Metrics {
	e.Helper()
	var got metricdata.ResourceMetrics
	require.NoError(e, e.reader.Collect(context.WithoutCancel(e.Context()), &got))
	var all []metricdata.Metrics
	for _, s := range got.ScopeMetrics {
		all = append(all, s.Metrics...)
	}
	return all
}

const acquireAnn = `{"candidateId":"ann"}`

func TestRequestsAreTimedUnderTheRoutesOfTheAPI(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0)
	for n := range 3 {
		host := fmt.Sprintf("h%d.example:%d", n, 1000+n)
		e.do("POST", fmt.Sprintf("/v1/elections/e-%d:acquire", n), acquireAnn, "Host", host)
		e.do("GET", fmt.Sprintf("/v1/elections/e-%d", n), "", "Host", host)
		e.do("HEAD", fmt.Sprintf("/v1/elections/e-%d", n), "", "Host", host)
		e.do("GET", fmt.Sprintf("/no/such/path/%d", n), "", "Host", host)
		e.do("GET", fmt.Sprintf("/v1/elections/e-%d:dance", n), "", "Host", host)
		e.do(fmt.Sprintf("DANCE%d", n), "/v1/elections", "", "Host", host)
	}
	e.do("GET", "/health/live", "")
	want := []string{
		"GET  404", "GET /v1/elections/{election} 200", "HEAD /v1/elections/{election} 200", "POST /v1/elections/{election}:acquire 200", "_OTHER  405",
	}
	if got := e.series(); !slices.Equal(got, want) {
		t.Errorf("series\n%q\nwant\n%q", got, want)
	}
	e.hasNoNames()
}

// Paths below that of a door may contain names of elections.
func TestADoorHasTwoRoutes(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0)
	e.do("GET", "/", "")
	e.do("GET", "/apis", "")
	for n := range 3 {
		e.do("GET", fmt.Sprintf("/apis/coordination.k8s.io/v1/namespaces/a/leases/e-%d", n), "")
		e.do("GET", fmt.Sprintf("/apis/x%%2Fe-%d?name=e-%d", n, n), "")
	}
	want := []string{"GET / 204", "GET /apis 204", "GET /apis/* 204"}
	if got := e.series(); !slices.Equal(got, want) {
		t.Errorf("series\n%q\nwant\n%q", got, want)
	}
	e.hasNoNames()
}

// hasNoNames requires that no label contains a name that a caller chose.
func (e *edge) hasNoNames() {
	e.Helper()
	for _, m := range e.collect() {
		d, _ := m.Data.(metricdata.Histogram[float64])
		for _, p := range d.DataPoints {
			if text := p.Attributes.Encoded(attribute.DefaultEncoder()); strings.Contains(text, "e-") || strings.Contains(text, "example") || strings.Contains(text, "DANCE") {
				e.Errorf("%s has %s", m.Name, text)
			}
		}
	}
}

func TestARequestContinuesItsCallersTraceToTheStore(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0)
	const traceID = "0af7651916cd43dd8448eb211c80319c"
	e.do("POST", "/v1/elections/jobs:acquire", acquireAnn, "traceparent", "00-"+traceID+"-b7ad6b7169203331-01", "Authorization", "Bearer ann")
	names := make(map[string]bool)
	for _, s := range e.spans.Ended() {
		names[s.Name()] = true
		if got := s.SpanContext().TraceID().String(); got != traceID {
			t.Errorf("span %q is of trace %s", s.Name(), got)
		}
	}
	if !names["POST /v1/elections/{election}:acquire"] || !names["store get"] || !names["store update"] || len(names) != 3 {
		t.Errorf("spans %v", names)
	}
}

func TestAStrangerDoesNotDecideWhatIsSampled(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0)
	const traceID = "0af7651916cd43dd8448eb211c80319c"
	for _, sampled := range []string{"00", "01"} {
		e.do("GET", "/v1/elections/jobs", "", "traceparent", "00-"+traceID+"-b7ad6b7169203331-"+sampled)
	}
	var linked int
	for _, s := range e.spans.Ended() {
		if s.SpanContext().TraceID().String() == traceID {
			t.Errorf("span %q is of the stranger's trace", s.Name())
		}
		for _, l := range s.Links() {
			if l.SpanContext.TraceID().String() == traceID {
				linked++
			}
		}
	}
	if linked != 2 { // the server's sampler takes all
		t.Errorf("%d spans with a link to the stranger's trace, want 2", linked)
	}
}

func TestAStreamIsCountedWhileItIsOpenAndNeitherTimedNorTraced(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0)
	e.do("POST", "/v1/elections/jobs:acquire", acquireAnn)
	ctx, cancel := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, "GET", e.url+"/v1/elections/jobs/events", nil)
	r.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	if n := e.watchers(); n != 1 {
		t.Errorf("%d watchers, want 1", n)
	}
	cancel()
	for e.watchers() != 0 {
		if t.Context().Err() != nil {
			t.Fatal("the watcher stays")
		}
	}
	if got := e.series(); len(got) != 1 {
		t.Errorf("series %q, want that of the acquire alone", got)
	}
	if n := len(e.spans.Started()); n != 3 {
		t.Errorf("%d spans, want the acquire's three", n)
	}
}

func (e *edge) watchers() int64 {
	for _, m := range e.collect() {
		if m.Name == "regent.watchers" {
			return m.Data.(metricdata.Gauge[int64]).DataPoints[0].Value
		}
	}
	e.Fatal("no regent.watchers")
	return 0
}

func TestACallThatWaitsOutlivesTheTimeForAnAnswer(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 200*time.Millisecond)
	e.do("POST", "/v1/elections/jobs:acquire", acquireAnn)
	if res := e.do("POST", "/v1/elections/jobs:acquire", `{"candidateId":"bob","wait":"0.5s"}`); res.StatusCode != http.StatusConflict {
		t.Errorf("status %d, want 409 after half a second", res.StatusCode)
	}
}
