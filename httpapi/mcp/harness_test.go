package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/httpapi/access/authn"
	"regent/httpapi/mcp"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/instance"
	"regent/leadership/service"
	"regent/leadership/wire"
	"regent/store/memory"
)

// store is the store of a fleet.
type store interface {
	service.Store
	service.Journal
}

// fleet is some instances on a store in memory, each with a door.
type fleet struct {
	t     *testing.T
	store store
	start time.Time
	gates []instance.Gate
	admit wire.Admit
}

// bubble runs a test with a fleet in a synctest bubble.
func bubble(t *testing.T, test func(*testing.T, *fleet)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		test(t, &fleet{t: t, store: memory.New(memory.Config{}), start: time.Now()})
	})
}

func (f *fleet) clock() time.Duration { return time.Since(f.start) }

// api starts another instance, and returns its REST API.
func (f *fleet) api() http.Handler {
	f.t.Helper()
	i, err := instance.New(instance.Config{Store: f.store, Journal: f.store, Name: "mcp", Alone: true, Now: f.clock})
	require.NoError(f.t, err)
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		i.Run(ctx)
	}()
	f.t.Cleanup(func() {
		stop()
		<-ran
	})
	return httpapi.New(httpapi.Config{Service: instance.Guard(i, f.gates...), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
}

// door starts another instance with a door.
func (f *fleet) door() *mcp.Door {
	f.t.Helper()
	d, err := mcp.NewDoor(mcp.DoorConfig{
		API: f.api(), Admit: f.admit, Version: "test", Clock: f.clock,
		Secret: func(ctx context.Context) ([]byte, error) { return service.SharedSecret(ctx, f.store) },
	})
	require.NoError(f.t, err)
	f.t.Cleanup(d.Close)
	return d
}

// as makes requests as an authenticated principal.
type as struct {
	principal authn.Principal
	handler   http.Handler
}

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := authn.With(r.Context(), a.principal)
	if a.principal != (authn.Principal{}) {
		ctx = leadership.WithActor(ctx, a.principal.String())
	}
	return mcp.Inside(a.handler).RoundTrip(r.WithContext(ctx))
}

func ann() authn.Principal { return authn.Principal{Issuer: "https://issuer.test", Subject: "ann"} }
func bob() authn.Principal { return authn.Principal{Issuer: "https://issuer.test", Subject: "bob"} }

// model is a client of a door or a session.
type model struct {
	t       *testing.T
	session *sdk.ClientSession
}

// connect connects a model to a door, as a principal.
func connect(t *testing.T, door http.Handler, p authn.Principal) *model {
	t.Helper()
	return over(t, &sdk.StreamableClientTransport{
		Endpoint: "http://localhost/mcp", HTTPClient: &http.Client{Transport: as{p, door}}, MaxRetries: -1, DisableStandaloneSSE: true,
	})
}

func over(t *testing.T, transport sdk.Transport) *model {
	t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := c.Connect(t.Context(), transport, nil)
	require.NoError(t, err)
	t.Cleanup(func() { session.Close() })
	return &model{t, session}
}

type args = map[string]any

// call calls a tool, and returns its answer, or its refusal.
func (m *model) call(tool string, in any) (out args, refusal string) {
	m.t.Helper()
	result, err := m.session.CallTool(m.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		m.t.Fatalf("%s: %v", tool, err)
	}
	text := result.Content[0].(*sdk.TextContent).Text
	if result.IsError {
		if result.StructuredContent != nil {
			m.t.Errorf("%s: a refusal has structured content: %v", tool, result.StructuredContent)
		}
		return nil, text
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		m.t.Fatalf("%s: %v in %s", tool, err, text)
	}
	if err := mcp.Fits(tool, in, map[string]any(out)); err != nil {
		m.t.Errorf("%s: its call, or its answer, is not as its schema says: %v\n%v\n%s", tool, err, in, text)
	}
	return out, ""
}

// must calls a tool that succeeds.
func (m *model) must(tool string, in any) args {
	m.t.Helper()
	out, refusal := m.call(tool, in)
	if refusal != "" {
		m.t.Fatalf("%s: %s", tool, refusal)
	}
	return out
}

// election reads an election from the store.
func (f *fleet) election(e leadership.Election) leadership.Lease {
	f.t.Helper()
	l, err := service.New(f.store).Get(f.t.Context(), e)
	require.NoError(f.t, err)
	return l
}

// local returns a function that connects clients to an API of the fleet.
func (f *fleet) local(api http.Handler) func(client.Config) (*client.Client, error) {
	return func(c client.Config) (*client.Client, error) {
		c.Server, c.HTTP, c.Clock, c.Log = "http://localhost", &http.Client{Transport: as{ann(), api}}, f.clock, slog.New(slog.DiscardHandler)
		return client.New(c)
	}
}

func newStore() store { return memory.New(memory.Config{}) }

func (f *fleet) revision(e leadership.Election) leadership.Revision { return f.election(e).Revision }

// order gives an order about an election as it is now.
func (f *fleet) order(m *model, tool string, in args) (out args, refusal string) {
	f.t.Helper()
	in["revision"] = f.revision(leadership.Election(in["election"].(string)))
	return m.call(tool, in)
}

// ordered gives an order that succeeds.
func (f *fleet) ordered(m *model, tool string, in args) args {
	f.t.Helper()
	out, refusal := f.order(m, tool, in)
	if refusal != "" {
		f.t.Fatalf("%s: %s", tool, refusal)
	}
	return out
}

// configure configures an election.
func (f *fleet) configure(e leadership.Election, c leadership.Config) {
	f.t.Helper()
	if _, err := service.New(f.store).Do(f.t.Context(), leadership.Configure{Election: e, Config: c}); err != nil {
		f.t.Fatal(err)
	}
}

// abandon makes a call in an older version of the protocol, in which calls cannot be cancelled, and
// disconnects.
func abandon(t *testing.T, door http.Handler, after time.Duration, tool string, in any) {
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	body, err := json.Marshal(args{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": args{"name": tool, "arguments": in}})
	if err != nil {
		t.Error(err)
		return
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/mcp", bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2025-06-18"}}
	if response, err := mcp.Inside(door).RoundTrip(r); err == nil {
		response.Body.Close()
		t.Errorf("the call was answered: %s", response.Status)
	}
}

// journal leads an election, and appends the numbers up to n to its journal, the first of which it
// then replaces by a snapshot.
func (f *fleet) journal(api http.Handler, e leadership.Election, n, snapshot int) (*client.Lease, *client.Journal) {
	f.t.Helper()
	c, err := f.local(api)(client.Config{})
	require.NoError(f.t, err)
	l, err := c.Campaign(f.t.Context(), e)
	require.NoError(f.t, err)
	j, err := l.Journal(f.t.Context())
	sum := 0
	for i := 1; i <= n && err == nil; i++ {
		_, err = j.Append(f.t.Context(), client.Entry{Data: i})
		if i <= snapshot {
			sum += i
		}
	}
	if err == nil {
		err = j.Snapshot(f.t.Context(), leadership.Index(snapshot), args{"sum": sum})
	}
	require.NoError(f.t, err)
	return l, j
}

// plain returns an API whose callers are not authenticated.
func (f *fleet) plain() http.Handler {
	api := f.api()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { api.ServeHTTP(w, r.WithContext(unnamed{r.Context()})) })
}

// unnamed is a context without values.
type unnamed struct{ context.Context }

func (unnamed) Value(any) any { return nil }

// newDoor returns a door that lives longer than its test, in real time.
func newDoor(t testing.TB) *mcp.Door {
	t.Helper()
	store := newStore()
	i, err := instance.New(instance.Config{Store: store, Journal: store, Name: "mcp", Alone: true})
	require.NoError(t, err)
	go i.Run(context.Background())
	d, err := mcp.NewDoor(mcp.DoorConfig{
		API:    httpapi.New(httpapi.Config{Service: i}),
		Secret: func(ctx context.Context) ([]byte, error) { return service.SharedSecret(ctx, store) },
	})
	require.NoError(t, err)
	return d
}

// text calls a tool with arguments as JSON, and returns its answer or its refusal.
func (m *model) text(tool, in string) string {
	m.t.Helper()
	result, err := m.session.CallTool(m.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(in)})
	if err != nil {
		m.t.Fatalf("%s %s: %v", tool, in, err)
	}
	return result.Content[0].(*sdk.TextContent).Text
}
