package test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"regent/httpapi/mcp"
	"regent/leadership/wire"
)

// bearing sends a token with each request.
type bearing struct {
	server *authServer
	email  string
}

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.server.token(b.email))
	return http.DefaultTransport.RoundTrip(r)
}

// model connects to the door for models, as a principal.
func (a *authServer) model(email string) (*sdk.ClientSession, error) {
	a.t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	m, err := c.Connect(a.t.Context(), &sdk.StreamableClientTransport{Endpoint: a.URL + mcp.Path, HTTPClient: &http.Client{Transport: bearing{a, email}}, MaxRetries: -1}, nil)
	if err == nil {
		a.t.Cleanup(func() { m.Close() })
	}
	return m, err
}

// use calls a tool, and returns its answer as text.
func use(t *testing.T, m *sdk.ClientSession, tool string, in map[string]any) (text string, refused bool) {
	t.Helper()
	r, err := m.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return r.Content[0].(*sdk.TextContent).Text, r.IsError
}

func TestTheDoorForModelsKnowsItsCallers(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	a := serveTo(t, issuer, nil, roles, "--auth", "oidc", "--auth-issuer", issuer.URL(), "--mcp")
	for _, path := range []string{mcp.Path, mcp.Path + "/x"} {
		got := a.ask("", http.MethodPost, path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		if got.code() != wire.Unauthenticated || got.header.Get("WWW-Authenticate") == "" {
			t.Errorf("without a token, %s: %+v", path, got)
		}
	}
	ann, err := a.model("candidate@test")
	if err != nil {
		t.Fatal(err)
	}
	text, refused := use(t, ann, "lead", map[string]any{"election": "own", "candidateId": "ann", "keep": "1h"})
	var led struct{ Handle string }
	if err := json.Unmarshal([]byte(text), &led); err != nil || refused {
		t.Fatalf("lead: %s", text)
	}
	a.secret(led.Handle) // it must not be in the log
	for email, code := range map[string]string{"operator@test": "INVALID_ARGUMENT", "stranger@test": "INVALID_ARGUMENT"} {
		other, err := a.model(email)
		if err != nil {
			t.Fatal(err)
		}
		if text, refused := use(t, other, "stop_leading", map[string]any{"handle": led.Handle}); !refused || !strings.HasPrefix(text, code) {
			t.Errorf("stop_leading by %s: %s", email, text)
		}
		text, refused := use(t, other, "pause", map[string]any{"election": "own", "for": "1m", "reason": "a test"})
		if allowed := email == "operator@test"; refused == allowed || refused && !strings.HasPrefix(text, "PERMISSION_DENIED") {
			t.Errorf("pause by %s: %s", email, text)
		}
	}
	if text, _ := use(t, ann, "history", map[string]any{"election": "own"}); !strings.Contains(text, `"actor":"operator@test"`) || !strings.Contains(text, `"actor":"candidate@test"`) {
		t.Errorf("the history does not name its callers: %s", text)
	}
	if text, refused := use(t, ann, "leading", map[string]any{"handle": led.Handle}); refused || !strings.Contains(text, `"leading":true`) {
		t.Errorf("leading: %s", text)
	}
}
