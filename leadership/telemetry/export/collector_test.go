package export_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metricsservice "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"regent/httpapi"
	"regent/httpapi/timing"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/telemetry"
	"regent/leadership/telemetry/export"
	"regent/store/memory"
)

// collector keeps every request that is sent to it.
type collector struct {
	traceservice.UnimplementedTraceServiceServer
	mu      sync.Mutex // guards all below
	traces  []*traceservice.ExportTraceServiceRequest
	metrics []*metricsservice.ExportMetricsServiceRequest
	headers []metadata.MD
}

// Export implements the service of traces.
func (c *collector) Export(ctx context.Context, r *traceservice.ExportTraceServiceRequest) (*traceservice.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.traces = append(c.traces, r)
	header, _ := metadata.FromIncomingContext(ctx)
	c.headers = append(c.headers, header)
	return new(traceservice.ExportTraceServiceResponse), nil
}

// ofMetrics is the collector's other service.
type ofMetrics struct {
	metricsservice.UnimplementedMetricsServiceServer
	*collector
}

// Export implements the service of metrics.
func (c ofMetrics) Export(_ context.Context, r *metricsservice.ExportMetricsServiceRequest) (*metricsservice.ExportMetricsServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.metrics = append(c.metrics, r)
	return new(metricsservice.ExportMetricsServiceResponse), nil
}

func overGRPC(t *testing.T) (c *collector, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c = new(collector)
	server := grpc.NewServer()
	traceservice.RegisterTraceServiceServer(server, c)
	metricsservice.RegisterMetricsServiceServer(server, ofMetrics{collector: c})
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return c, "http://" + listener.Addr().String()
}

func overHTTP(t *testing.T) (c *collector, address string) {
	t.Helper()
	c = new(collector)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		switch r.URL.Path {
		case "/v1/traces":
			m := new(traceservice.ExportTraceServiceRequest)
			err = proto.Unmarshal(body, m)
			c.Export(metadata.NewIncomingContext(r.Context(), metadata.Pairs("x-team", r.Header.Get("x-team"))), m)
		case "/v1/metrics":
			m := new(metricsservice.ExportMetricsServiceRequest)
			err = proto.Unmarshal(body, m)
			ofMetrics{collector: c}.Export(r.Context(), m)
		}
		assert.NoError(t, err)
	}))
	t.Cleanup(server.Close)
	return c, server.URL
}

// environ is the environment of this process, as Setup wants it.
func environ() map[string]string {
	env := make(map[string]string)
	for _, pair := range os.Environ() {
		key, value, _ := strings.Cut(pair, "=")
		env[key] = value
	}
	return env
}

// secretKey is a key that must be nowhere.
const secretKey = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTEyMzQ"

// membership knows no member.
type membership struct{}

func (membership) MemberStats() (byRole map[leadership.Role]int64, readOnly int64, lowest float64) {
	return nil, 0, 1
}

func (membership) JournalStats() (followers, lag int64) { return 0, 0 }

// use makes some calls of a server whose telemetry goes through the pipeline.
func use(t *testing.T, p *export.Pipeline) {
	t.Helper()
	m, err := telemetry.New(p.Meters, p.Tracers)
	require.NoError(t, err)
	leases := memory.New(memory.Config{})
	i, err := instance.New(instance.Config{Store: m.Store(leases), Journal: m.Journal(leases), Name: "a", Alone: true})
	require.NoError(t, err)
	require.NoError(t, m.Latch(func() bool { return true }))
	require.NoError(t, m.Members(membership{}))
	api := httpapi.New(httpapi.Config{Service: instance.Guard(i, m)})
	server := httptest.NewServer(timing.Handler(p.Meters, p.Tracers, api, api, func(*http.Request) bool { return true }))
	defer server.Close()
	ann, bob := `{"candidateId":"ann","key":"`+secretKey+`"`, `{"candidateId":"bob","key":"`+secretKey+`"`
	for _, call := range [][3]string{
		{"POST", "/v1/elections/jobs:acquire", ann + `}`},
		{"POST", "/v1/elections/jobs:renew", ann + `,"fencingToken":1}`},
		{"POST", "/v1/elections/jobs:acquire", `{"candidateId":"bob"}`},
		{"PUT", "/v1/elections/jobs/checkpoint", ann + `,"fencingToken":1,"sequence":1,"data":{"done":4}}`},
		{"POST", "/v1/elections/jobs:handOver", ann + `,"fencingToken":1,"to":"bob"}`},
		{"POST", "/v1/elections/jobs:ready", bob + `,"fencingToken":1}`},
		{"POST", "/v1/elections/jobs:yield", ann + `,"fencingToken":1}`},
		{"POST", "/v1/elections/jobs:acquire", bob + `}`},
		{"POST", "/v1/elections/jobs:release", bob + `,"fencingToken":2}`},
	} {
		req, err := http.NewRequestWithContext(t.Context(), call[0], server.URL+call[1], strings.NewReader(call[2]))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		res.Body.Close()
		if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusConflict {
			t.Fatalf("%s: %s", call[1], res.Status)
		}
	}
}

func TestACollectorReceivesTheTracesAndMetricsOfRealCalls(t *testing.T) {
	for protocol, start := range map[string]func(*testing.T) (*collector, string){"grpc": overGRPC, "http/protobuf": overHTTP} {
		t.Run(protocol, func(t *testing.T) {
			c, address := start(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=planning")
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
			t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/no/such/file") // which is for Google's collector
			t.Setenv("OTEL_SERVICE_NAME", "leases")
			t.Setenv("K_SERVICE", "regent-prod")
			t.Setenv("GOOGLE_CLOUD_PROJECT", "my-project")
			p, err := export.Setup(t.Context(), export.Config{Env: environ(), Version: "1.2.3", Instance: "i-1"})
			require.NoError(t, err)
			use(t, p)
			require.NoError(t, p.Shutdown(t.Context()))
			c.mu.Lock()
			defer c.mu.Unlock()
			c.holdsSpans(t)
			c.holdsMetrics(t)
			for _, m := range c.traces {
				assert.NotContains(t, m.String(), secretKey, "a key is in a trace")
			}
			if len(c.headers) == 0 || !slices.Equal(c.headers[0].Get("x-team"), []string{"planning"}) {
				t.Errorf("headers %v", c.headers)
			}
		})
	}
}

func (c *collector) holdsSpans(t *testing.T) {
	t.Helper()
	var names []string
	for _, m := range c.traces {
		for _, r := range m.ResourceSpans {
			describes(t, r.Resource.Attributes)
			for _, s := range r.ScopeSpans {
				for _, span := range s.Spans {
					names = append(names, span.Name)
				}
			}
		}
	}
	slices.Sort(names)
	want := []string{
		"POST /v1/elections/{election}:acquire", "POST /v1/elections/{election}:handOver", "POST /v1/elections/{election}:ready",
		"POST /v1/elections/{election}:release", "POST /v1/elections/{election}:renew", "POST /v1/elections/{election}:yield", "PUT /v1/elections/{election}/checkpoint",
		"store amend", "store get", "store renew", "store update",
	}
	if names = slices.Compact(names); !slices.Equal(names, want) {
		t.Errorf("spans\n%q\nwant\n%q", names, want)
	}
}

func (c *collector) holdsMetrics(t *testing.T) {
	t.Helper()
	units := make(map[string]string)
	for _, m := range c.metrics {
		for _, r := range m.ResourceMetrics {
			describes(t, r.Resource.Attributes)
			for _, s := range r.ScopeMetrics {
				for _, one := range s.Metrics {
					units[one.Name] = one.Unit
				}
			}
		}
	}
	for _, m := range telemetry.Catalogue() {
		switch unit, ok := units[m.Name]; {
		case m.Name == "regent.cache.reads", m.Name == "regent.events.unannounced.age", m.Name == "regent.events.troubles", m.Name == "regent.renewals.stretch",
			m.Name == "regent.callers.unverified", strings.HasPrefix(m.Name, "regent.election."): // not read here
		case m.Name == "regent.leadership.transition.duration", m.Name == "regent.ballots.duration": // there was but one term, and no ballot
		case !ok || unit != m.Unit:
			t.Errorf("%s came: %t, in %q; want it in %q", m.Name, ok, unit, m.Unit)
		}
	}
	if units["http.server.request.duration"] != "s" {
		t.Error("http.server.request.duration did not come")
	}
}

func describes(t *testing.T, got []*common.KeyValue) {
	t.Helper()
	has := make(map[string]string)
	for _, kv := range got {
		has[kv.Key] = kv.Value.GetStringValue()
	}
	for key, want := range map[string]string{
		"service.name": "leases", "service.version": "1.2.3", "service.instance.id": "i-1", "gcp.project_id": "my-project",
		"cloud.platform": "gcp_cloud_run", "faas.name": "regent-prod", "deployment.environment": "test",
	} {
		if has[key] != want {
			t.Errorf("the resource's %s is %q, want %q", key, has[key], want)
		}
	}
}

func TestServingGoesOnWithoutTheCollector(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	p, err := export.Setup(t.Context(), export.Config{Env: environ()})
	require.NoError(t, err)
	use(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Shutdown(ctx); err == nil {
		t.Error("nothing is said of what was lost")
	}
}

func TestGooglesCollectorWantsCredentialsAndAProject(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://telemetry.googleapis.com")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/no/such/file")
	if _, err := export.Setup(t.Context(), export.Config{Env: environ()}); err == nil || !strings.Contains(err.Error(), "telemetry.googleapis.com needs credentials") {
		t.Error(err)
	}
	user := filepath.Join(t.TempDir(), "user.json")
	require.NoError(t, os.WriteFile(user, []byte(`{"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":"r"}`), 0o600))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", user)
	t.Setenv("GOOGLE_CLOUD_PROJECT", "")
	if _, err := export.Setup(t.Context(), export.Config{Env: environ()}); err == nil || !strings.Contains(err.Error(), "set GOOGLE_CLOUD_PROJECT") {
		t.Error(err)
	}
}

// account sets credentials that are told the token "fresh", of the project "theirs".
func account(t *testing.T) {
	t.Helper()
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"access_token":"fresh","token_type":"Bearer","expires_in":3600}`)
	}))
	t.Cleanup(tokens.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	content, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "theirs", "client_email": "regent@theirs.iam.gserviceaccount.com", "token_uri": tokens.URL,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "account.json")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
}

func TestGooglesCollectorIsSentATokenOfTheCredentials(t *testing.T) {
	account(t)
	token, project, err := export.GoogleToken(t.Context())
	if err != nil || token != "fresh" || project != "theirs" {
		t.Errorf("%q of %q, %v", token, project, err)
	}
}

func TestGooglesCredentialsAreForGooglesCollectorAlone(t *testing.T) {
	account(t)
	c, address := overGRPC(t)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://telemetry.googleapis.com") // which nothing is sent to here
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", address)
	p, err := export.Setup(t.Context(), export.Config{Env: environ()})
	if err != nil { // credentials do not go over an open connection
		t.Fatal(err)
	}
	_, err = telemetry.New(p.Meters, p.Tracers)
	require.NoError(t, err)
	if err := p.Shutdown(t.Context()); err != nil || len(c.metrics) == 0 {
		t.Errorf("%d messages, %v", len(c.metrics), err)
	}
	assert.EqualValues(t, "theirs", p.Project, "the project")
}
