package mcp_test

import (
	"encoding/json"
	"fmt"
	"testing"
)

// What a call of a tool costs over HTTP, without the network.
func BenchmarkDoor(b *testing.B) {
	door := newDoor(b)
	call := func(b *testing.B, tool, in string) (answer string) {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, in)
		status, answer := post(b.Context(), door, "POST", body, nil)
		var reply struct {
			Result struct {
				IsError           bool
				StructuredContent struct{ Handle string }
			}
		}
		if err := json.Unmarshal([]byte(answer), &reply); err != nil || status != 200 || reply.Result.IsError {
			b.Fatalf("%s: %d %s", tool, status, answer)
		}
		return reply.Result.StructuredContent.Handle
	}
	handle := call(b, "lead", `{"election":"reports","leaseDuration":"1h","keep":"1h"}`)
	for _, c := range []struct{ tool, in string }{
		{"who_leads", `{"election":"reports"}`},
		{"leading", fmt.Sprintf(`{"handle":%q}`, handle)},
		{"check_token", `{"election":"reports","fencingToken":1}`},
	} {
		b.Run(c.tool, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call(b, c.tool, c.in)
			}
		})
	}
}
