package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"regent/httpapi/mcp"
	"regent/leadership"
	"regent/leadership/wire"
)

func TestWrongArgumentsAreRefusedWithASentence(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		door := f.door()
		m := connect(t, door, ann())
		handle := m.must("lead", args{"election": "reports", "candidateId": "ann"})["handle"]
		before := f.election("reports")
		for _, c := range []struct {
			tool string
			in   any
			says string
		}{
			{"lead", nil, "election is missing"},
			{"lead", args{"election": "Reports"}, "a-z, 0-9"},
			{"lead", args{"election": "e", "leaseDuration": "10ms"}, "from 1s to 24h"},
			{"lead", args{"election": "e", "wait": "6m"}, "from 0s to 5m0s"},
			{"lead", args{"election": "e", "keep": "9s"}, "from 10s to 1h0m0s"},
			{"lead", args{"election": "e", "capabilities": []any{"gpu", 1}}, "capabilities/1 must be a string"},
			{"leading", args{}, "handle is missing"},
			{"leading", args{"handle": handle.(string) + "\n"}, "exactly as lead returned it"},
			{"report", args{"handle": handle, "calls": 1, "errors": 2}, "more than"},
			{"stop_leading", args{"handle": handle, "reason": strings.Repeat("x", 257)}, "256"},
			{"why_not", args{"election": "reports"}, "candidateId is missing"},
			{"history", args{"election": "reports", "afterRevision": -1}, "afterRevision is a revision, or 0"},
			{"watch", args{"election": "reports", "wait": "1h"}, "from 1s to 5m0s"},
			{"checkpoint_put", args{"handle": handle, "sequence": 1}, "send data"},
			{"journal_append", args{"handle": handle, "after": 0, "entries": []any{args{"type": "x"}}}, "data is missing"},
			{"journal_read", args{"election": "reports", "afterIndex": -1}, "afterIndex is an index, or 0"},
			{"check_token", args{"election": "reports", "fencingToken": json.RawMessage("1e30")}, "integer"},
			{"evict", args{"election": "reports", "revision": 1, "fencingToken": 1, "ban": "0s", "reason": "x"}, "leave it out"},
			{"stop_leading", args{"handle": handle, "reason": "two\nlines"}, "line"},
			{"checkpoint_put", args{"handle": handle, "sequence": 1, "data": 1, "sha256": strings.Repeat("a", 64)}, "leave it out"},
			{"evict", args{"election": "reports", "revision": 1, "fencingToken": 0, "reason": "x"}, "who_leads has it"},
			{"history", args{"election": "reports", "limit": 1001}, "from 1 to 1000"},
			{"watch", args{"election": ""}, "needs a name"},
			{"watch", args{"election": "reports", "afterRevision": -1}, "afterRevision is a revision, or 0"},
			{"resume", args{"election": "reports", "revision": 1}, "reason is missing"},
			{"resume", args{"election": "reports", "reason": "x"}, "revision is missing"},
			{"pause", args{"election": "reports", "revision": 0, "for": "1h", "reason": "x"}, "who_leads has it"},
			{"checkpoint_put", args{"handle": handle, "sequence": 0, "data": 1}, "1 for your first"},
			{"journal_append", args{"handle": handle, "entries": []any{args{"data": 1}}}, "after is missing"},
			{"journal_append", args{"handle": handle, "after": -1, "entries": []any{args{"data": 1}}}, "or 0 if there is none"},
			{"approve", args{"election": "reports", "revision": 1, "fencingToken": 1, "for": "0s", "reason": "x"}, "leave it out"},
		} {
			out, refusal := m.call(c.tool, c.in)
			if !begins(refusal, leadership.InvalidArgument) || !strings.Contains(refusal, c.says) {
				t.Errorf("%s %.200s: %v %q; want %q", c.tool, fmt.Sprint(c.in), out, refusal, c.says)
			}
		}
		tooMuch := args{"handle": handle, "sequence": 1, "data": strings.Repeat("x", leadership.MaxCheckpointBytes)}
		if _, refusal := m.call("checkpoint_put", tooMuch); !begins(refusal, wire.PayloadTooLarge) || !strings.Contains(refusal, "uri") {
			t.Errorf("checkpoint_put of 64 KiB and more: %s", refusal)
		}
		after := f.election("reports")
		if after.Revision != before.Revision || after.State != leadership.Held {
			t.Errorf("a refused call has changed the election:\n%+v\n%+v", before, after)
		}
		if out := m.must("leading", args{"handle": handle}); out["leading"] != true {
			t.Errorf("%v", out)
		}
	})
}

// post sends a body to a door, and returns the status and the answer.
func post(ctx context.Context, door http.Handler, method, body string, header http.Header) (status int, answer string) {
	r := httptest.NewRequestWithContext(ctx, method, "/mcp", strings.NewReader(body))
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	maps.Copy(r.Header, header)
	w := httptest.NewRecorder()
	door.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestABadRequestIsRefusedAndHarmsNoOther(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		door := f.door()
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who_leads","arguments":{"election":"reports"}}}`
		for _, c := range []struct {
			what, method, body string
			header             http.Header
			want               []int
		}{
			{"GET", "GET", "", nil, []int{405}},
			{"no body", "POST", "", nil, []int{400}},
			{"text", "POST", call, http.Header{"Content-Type": {"text/plain"}}, []int{415}},
			{"another version", "POST", call, http.Header{"Mcp-Protocol-Version": {"1999-01-01"}}, []int{400}},
			{"Last-Event-ID", "POST", call, http.Header{"Last-Event-Id": {"1"}}, []int{400}},
			{"a batch", "POST", "[" + call + "]", http.Header{"Mcp-Protocol-Version": {"2025-11-25"}}, []int{400}},
			{"a batch of an older version", "POST", " [" + call + "," + call + "]", http.Header{"Mcp-Protocol-Version": {"2025-03-26"}}, []int{400}},
			{"an unknown method", "POST", strings.Replace(call, "tools/call", "tools/steal", 1), nil, []int{400}},
			{"no name", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, nil, []int{400, 200}},
			{"an unknown tool", "POST", strings.Replace(call, "who_leads", "rm", 1), nil, []int{200}},
			{"deep arguments", "POST", strings.Replace(call, `"reports"`, strings.Repeat("[", 20000)+strings.Repeat("]", 20000), 1), nil, []int{200, 400}},
			{"a name twice", "POST", strings.Replace(call, `{"election":"reports"}`, `{"election":"reports","election":"x"}`, 1), nil, []int{400}},
			{"too much", "POST", call + strings.Repeat(" ", mcp.MaxBody), nil, []int{413}},
			{"a session that is none", "POST", call, http.Header{"Mcp-Session-Id": {"x"}}, []int{200}},
			{"the wrong header", "POST", call, http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/list"}}, []int{400}},
		} {
			status, answer := post(t.Context(), door, c.method, c.body, c.header)
			if !slices.Contains(c.want, status) || status != http.StatusOK && len(answer) < 5 {
				t.Errorf("%s: %d %.200s; want %v", c.what, status, answer, c.want)
			}
			if status == http.StatusOK && !strings.Contains(answer, "error") && !strings.Contains(answer, `"isError":true`) {
				t.Errorf("%s is done: %s", c.what, answer)
			}
		}
		connect(t, door, ann()).must("lead", args{"election": "reports"})
	})
}

func TestThereIsNothingBelowTheTools(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		r := httptest.NewRequest("POST", mcp.Path+"/x", strings.NewReader("{}"))
		w := httptest.NewRecorder()
		f.door().ServeHTTP(w, r)
		if p, ok := wire.ReadProblem(w.Header(), w.Body.Bytes()); !ok || p.Code != leadership.NotFound {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

// The server gives up the request of a slow or disconnected caller.
func TestABodyThatDoesNotArriveIsARequestTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		r := httptest.NewRequest("POST", "/mcp", io.MultiReader(strings.NewReader("{"), broken{}))
		w := httptest.NewRecorder()
		f.door().ServeHTTP(w, r)
		if p, ok := wire.ReadProblem(w.Header(), w.Body.Bytes()); !ok || p.Code != wire.RequestTimeout {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, fmt.Errorf("i/o timeout") }

// unread is a body that fails the test if it is read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestABodyIsNotReadBeforeItsCallerIsAdmitted(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		var asked []wire.Admission
		released := 0
		refused := error(wire.PermissionDenied)
		f.admit = func(ctx context.Context, ask wire.Admission) (context.Context, func(), error) {
			asked = append(asked, ask)
			return ctx, func() { released++ }, refused
		}
		door := f.door()
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", "/mcp", unread{t})
		door.ServeHTTP(w, r)
		if p, ok := wire.ReadProblem(w.Header(), w.Body.Bytes()); !ok || p.Code != wire.PermissionDenied {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		refused = nil
		if status, answer := post(t.Context(), door, "POST", "{}", nil); status != http.StatusBadRequest {
			t.Errorf("%d %s", status, answer)
		}
		if len(asked) != 2 || asked[0].Body != mcp.MaxBody || asked[1].Body != 128<<10 || asked[0].Cost != wire.CostRead || released != 1 {
			t.Errorf("asked for %+v, released %d", asked, released)
		}
	})
}

// FuzzDoor sends arbitrary bodies: they must create no election, and the next caller must be
// served.
func FuzzDoor(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`))
	for tool, in := range inputs("reports", "regent-lead-AAAA") {
		body, err := json.Marshal(args{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": sdk.CallToolParams{Name: tool, Arguments: in}})
		require.NoError(f, err)
		f.Add(bytes.ReplaceAll(body, []byte(`"lead"`), []byte(`"leadx"`)))
	}
	f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","result":{}}`))
	var door *mcp.Door
	f.Fuzz(func(t *testing.T, body []byte) {
		if bytes.Contains(body, []byte(`lead"`)) {
			t.Skip("a call of lead would wait, and lead")
		}
		if door == nil {
			door = newDoor(t)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond) // a call may wait
		defer cancel()
		if status, answer := post(ctx, door, "POST", string(body), nil); status >= 500 {
			t.Errorf("%d %s", status, answer)
		}
	})
}
